//! Forwarding between a client's connection and a connection to the server.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::faults::{Fate, Faults};
use crate::Reply;

/// One thread forwards requests, another replies. They share the fates of the requests without a
/// reply, in order.
#[derive(Debug)]
pub(super) struct Relay {
    client: TcpStream,
    server: TcpStream,
    faults: Arc<Mutex<Faults>>,
    pending: Mutex<VecDeque<Fate>>,
    /// Set once a request or reply was dropped: a later reply would belong to the wrong request.
    is_silent: AtomicBool,
}

impl Relay {
    pub(super) fn open(
        client: TcpStream,
        server: TcpStream,
        faults: Arc<Mutex<Faults>>,
    ) -> io::Result<Arc<Self>> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (requests, replies) = (client.try_clone()?, server.try_clone()?);
        let (pending, is_silent) = (Mutex::default(), AtomicBool::new(false));
        let relay = Arc::new(Self { client, server, faults, pending, is_silent });
        let (reader, writer) = (Arc::clone(&relay), Arc::clone(&relay));
        thread::spawn(move || {
            // When one side closes, planned or not, the other closes too.
            let _ = reader.carry_requests(BufReader::new(requests));
            reader.close();
        });
        thread::spawn(move || {
            let _ = writer.carry_replies(BufReader::new(replies));
            writer.close();
        });
        Ok(relay)
    }

    pub(super) fn close(&self) {
        // The sockets may be closed already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    fn carry_requests(&self, mut from: BufReader<TcpStream>) -> io::Result<()> {
        loop {
            let mut raw = Vec::new();
            let words = read_request(&mut from, &mut raw)?;
            let fate = self.faults().fate(&words);
            if fate == Fate::Swallow {
                self.is_silent.store(true, Ordering::SeqCst);
            }
            if self.is_silent.load(Ordering::SeqCst) {
                continue;
            }
            let (is_executed, is_cut) = (fate.is_executed(), fate == Fate::CutBefore);
            {
                let mut pending = self.pending();
                pending.push_back(fate);
                // Without earlier requests, no reply of the server will trigger it.
                if pending.len() == 1 && !is_executed {
                    self.complete_unsent(&mut pending)?;
                }
            }
            if is_cut {
                // Earlier requests still get their replies.
                return self.wait_for_close();
            }
            if is_executed {
                (&self.server).write_all(&raw)?;
            }
        }
    }

    fn carry_replies(&self, mut from: BufReader<TcpStream>) -> io::Result<()> {
        loop {
            let mut raw = Vec::new();
            let reply = Reply::read(&mut from, &mut raw)?;
            let fate = match reply {
                // A push message is not the reply to a request.
                Reply::Push(_) => None,
                _ => self.pending().front().cloned(),
            };
            match &fate {
                None | Some(Fate::Pass) => self.reply(&raw)?,
                Some(Fate::Replace { line, .. }) => self.reply_line(line)?,
                Some(Fate::CutBefore | Fate::CutAfterExecution | Fate::Swallow) => return Ok(()),
            }
            if fate.is_some() {
                let mut pending = self.pending();
                pending.pop_front();
                self.complete_unsent(&mut pending)?;
            }
        }
    }

    /// Completes the requests at the front of the queue that were not sent to the server.
    fn complete_unsent(&self, pending: &mut VecDeque<Fate>) -> io::Result<()> {
        while let Some(fate) = pending.front().filter(|fate| !fate.is_executed()) {
            match fate {
                Fate::Replace { line, .. } => self.reply_line(line)?,
                _ => self.close(),
            }
            pending.pop_front();
        }
        Ok(())
    }

    fn reply_line(&self, line: &str) -> io::Result<()> {
        self.reply(format!("{line}\r\n").as_bytes())
    }

    fn reply(&self, reply: &[u8]) -> io::Result<()> {
        let (delay, split) = {
            let faults = self.faults();
            (faults.delay, faults.split_bytes)
        };
        thread::sleep(delay);
        if self.faults().blackhole {
            self.is_silent.store(true, Ordering::SeqCst);
        }
        if self.is_silent.load(Ordering::SeqCst) {
            return Ok(());
        }
        if split {
            reply.chunks(1).try_for_each(|byte| (&self.client).write_all(byte))
        } else {
            (&self.client).write_all(reply)
        }
    }

    /// Discards input until the other thread closes the connection.
    fn wait_for_close(&self) -> io::Result<()> {
        io::copy(&mut &self.client, &mut io::sink()).map(drop)
    }

    fn pending(&self) -> MutexGuard<'_, VecDeque<Fate>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads one request, an array or an inline command, and returns its first words.
fn read_request(from: &mut BufReader<TcpStream>, raw: &mut Vec<u8>) -> io::Result<Vec<String>> {
    let first = from.fill_buf()?.first().copied().ok_or(io::ErrorKind::UnexpectedEof)?;
    if first == b'*' {
        return match Reply::read(from, raw)? {
            Reply::Array(args) if !args.is_empty() => {
                Ok(args.iter().take(3).map(Reply::text).collect())
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        };
    }
    from.read_until(b'\n', raw)?;
    let line = String::from_utf8_lossy(raw);
    // An empty line is no command; the server ignores it.
    Ok(line.split_whitespace().take(3).map(str::to_owned).collect())
}
