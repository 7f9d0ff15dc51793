# Runs a server, and kills it at a line on standard input or at its end.
#
#   sh -c child_guard.sh child_guard LOG FOLDER SERVER ARGUMENT...
#
# Prints the server's process id. Only the parent of a process can be sure that the id has not been
# reused.
log=$1 folder=$2
shift 2
# The kernel sends HUP to an orphaned process group with a stopped process.
trap '' HUP
exec 3<&0
"$@" >>"$log" 2>&1 </dev/null 3<&- &
server=$!
{
    read -r line
    orphaned=$?
    trap '' TERM
    kill -KILL "$server"
    # After a line, the test removes the folder. At the end of input, the test has died.
    [ "$orphaned" = 0 ] || rm -rf "$folder"
} <&3 >/dev/null 2>&1 &
reader=$!
exec 3<&- 0<&-
echo "$server"
exec >/dev/null 2>&1
wait "$server"
kill "$reader"
wait "$reader"
