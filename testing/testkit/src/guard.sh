# Runs a server, and kills it when the standard input ends or says so.
#
#   sh -c guard.sh guard LOG FOLDER SERVER ARGUMENT...
#
# The first line that it prints is the server's process id. As its parent it alone knows that this
# id still is the server's.
log=$1 folder=$2
shift 2
# The kernel hangs up on a group that is left behind with a stopped process in it.
trap '' HUP
exec 3<&0
"$@" >>"$log" 2>&1 </dev/null 3<&- &
server=$!
{
    read -r order
    orphaned=$?
    trap '' TERM
    kill -KILL "$server"
    # Who gives an order also cleans up. The end of input is the end of the test's process.
    [ "$orphaned" = 0 ] || rm -rf "$folder"
} <&3 >/dev/null 2>&1 &
reader=$!
exec 3<&- 0<&-
echo "$server"
exec >/dev/null 2>&1
wait "$server"
kill "$reader"
wait "$reader"
