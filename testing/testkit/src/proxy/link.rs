//! One connection of a client with its connection to the server.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::faults::{Fate, Faults};
use crate::Reply;

/// Requests are read by one thread and replies by another; between them lies the fate of each
/// request that is not answered yet, in order.
#[derive(Debug)]
pub(super) struct Link {
    client: TcpStream,
    server: TcpStream,
    faults: Arc<Mutex<Faults>>,
    pending: Mutex<VecDeque<Fate>>,
    /// Set once something was swallowed: whatever came after it would answer the wrong request.
    is_lost: AtomicBool,
}

impl Link {
    pub(super) fn open(
        client: TcpStream,
        server: TcpStream,
        faults: Arc<Mutex<Faults>>,
    ) -> io::Result<Arc<Self>> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (requests, replies) = (client.try_clone()?, server.try_clone()?);
        let (pending, is_lost) = (Mutex::default(), AtomicBool::new(false));
        let link = Arc::new(Self { client, server, faults, pending, is_lost });
        let (reader, writer) = (Arc::clone(&link), Arc::clone(&link));
        thread::spawn(move || {
            // An end of either side is the end of both, whether it was planned or not.
            let _ = reader.carry_requests(BufReader::new(requests));
            reader.close();
        });
        thread::spawn(move || {
            let _ = writer.carry_replies(BufReader::new(replies));
            writer.close();
        });
        Ok(link)
    }

    pub(super) fn close(&self) {
        // It may be closed already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    fn carry_requests(&self, mut from: BufReader<TcpStream>) -> io::Result<()> {
        loop {
            let mut raw = Vec::new();
            let command = read_request(&mut from, &mut raw)?;
            let fate = self.faults().fate(&command);
            if fate == Fate::Swallow {
                self.is_lost.store(true, Ordering::SeqCst);
            }
            if self.is_lost.load(Ordering::SeqCst) {
                continue;
            }
            let (is_executed, is_cut) = (fate.is_executed(), fate == Fate::CutBefore);
            {
                let mut pending = self.pending();
                pending.push_back(fate);
                // With nothing else under way no reply of the server will bring it to its turn.
                if pending.len() == 1 && !is_executed {
                    self.settle_unseen(&mut pending)?;
                }
            }
            if is_cut {
                // What was asked before is still answered.
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
                Reply::Push(_) => None,
                // Whoever has subscribed is told things that he did not ask for.
                _ => self.pending().front().cloned(),
            };
            match &fate {
                None | Some(Fate::Pass) => self.answer(&raw)?,
                Some(Fate::Replace { line, .. }) => self.answer_line(line)?,
                Some(Fate::CutBefore | Fate::CutAfterExecution | Fate::Swallow) => return Ok(()),
            }
            if fate.is_some() {
                let mut pending = self.pending();
                pending.pop_front();
                self.settle_unseen(&mut pending)?;
            }
        }
    }

    /// Answers the requests that the server does not see and whose turn it is.
    fn settle_unseen(&self, pending: &mut VecDeque<Fate>) -> io::Result<()> {
        while let Some(fate) = pending.front().filter(|fate| !fate.is_executed()) {
            match fate {
                Fate::Replace { line, .. } => self.answer_line(line)?,
                _ => self.close(),
            }
            pending.pop_front();
        }
        Ok(())
    }

    fn answer_line(&self, line: &str) -> io::Result<()> {
        self.answer(format!("{line}\r\n").as_bytes())
    }

    fn answer(&self, reply: &[u8]) -> io::Result<()> {
        let (delay, split) = {
            let faults = self.faults();
            (faults.delay, faults.split_bytes)
        };
        thread::sleep(delay);
        if self.faults().blackhole {
            self.is_lost.store(true, Ordering::SeqCst);
        }
        if self.is_lost.load(Ordering::SeqCst) {
            return Ok(());
        }
        if split {
            reply.chunks(1).try_for_each(|byte| (&self.client).write_all(byte))
        } else {
            (&self.client).write_all(reply)
        }
    }

    /// Reads on, and does nothing with it, until the other thread closes.
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

/// Reads one request, an array or a plain line, and returns the name of its command.
fn read_request(from: &mut BufReader<TcpStream>, raw: &mut Vec<u8>) -> io::Result<String> {
    let first = from.fill_buf()?.first().copied().ok_or(io::ErrorKind::UnexpectedEof)?;
    if first == b'*' {
        return match Reply::read(from, raw)? {
            Reply::Array(words) => Ok(words.first().map(Reply::text).unwrap_or_default()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        };
    }
    from.read_until(b'\n', raw)?;
    let line = String::from_utf8_lossy(raw);
    Ok(line.split_whitespace().next().unwrap_or_default().to_owned())
}
