use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::wait::wait_until;

/// A server that sends back what it receives.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut buffer = [0; 1_024];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    addr
}

fn link() -> FaultyLink {
    FaultyLink::to(echo()).unwrap()
}

fn connect(link: &FaultyLink) -> TcpStream {
    let stream = TcpStream::connect(link.addr()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What comes back of `text`.
fn say(stream: &mut TcpStream, text: &str) -> io::Result<String> {
    stream.write_all(text.as_bytes())?;
    let mut buffer = vec![0; text.len()];
    stream.read_exact(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}

fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    let silent = stream
        .read(&mut [0; 16])
        .is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    silent
}

#[test]
fn without_a_fault_everything_passes() {
    let link = link();
    let mut stream = connect(&link);
    let long = "what was said".repeat(20_000);
    let mut back = stream.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| stream.write_all(long.as_bytes()).unwrap());
        let mut received = vec![0; long.len()];
        back.read_exact(&mut received).unwrap();
        assert!(received == long.as_bytes());
    });
    // The end is passed on too, in both directions.
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 16]).unwrap(), 0);
    assert_eq!(link.accepted(), 1);
}

#[test]
fn a_black_hole_swallows_for_old_and_new_connections() {
    let link = link();
    let (mut old, mut idle) = (connect(&link), connect(&link));
    assert_eq!(say(&mut old, "a").unwrap(), "a");
    assert_eq!(say(&mut idle, "a").unwrap(), "a");
    link.set(Fault::BlackHole);
    let mut new = connect(&link);
    old.write_all(b"lost").unwrap();
    new.write_all(b"lost").unwrap();
    assert!(is_silent(&mut old) && is_silent(&mut new));
    link.set(Fault::None);
    // Who lost something stays lost; who was idle, and who comes now, does not notice.
    old.write_all(b"more").unwrap();
    new.write_all(b"more").unwrap();
    assert_eq!(say(&mut idle, "b").unwrap(), "b");
    assert_eq!(say(&mut connect(&link), "c").unwrap(), "c");
    assert!(is_silent(&mut old) && is_silent(&mut new));
}

#[test]
fn what_was_stalled_arrives_later() {
    let link = link();
    let mut stream = connect(&link);
    assert_eq!(say(&mut stream, "a").unwrap(), "a");
    link.set(Fault::Stall);
    stream.write_all(b"late").unwrap();
    assert!(is_silent(&mut stream));
    link.set(Fault::None);
    let mut received = [0; 4];
    stream.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"late");
}

#[test]
fn a_refusing_link_listens_again_on_the_same_port() {
    let link = link();
    let mut stream = connect(&link);
    assert_eq!(say(&mut stream, "a").unwrap(), "a");
    link.set(Fault::Refuse);
    let refused = TcpStream::connect(link.addr()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(stream.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    link.set(Fault::None);
    assert_eq!(say(&mut connect(&link), "b").unwrap(), "b");
}

#[test]
fn a_reset_is_an_rst_for_old_and_new_connections() {
    let link = link();
    let mut stream = connect(&link);
    assert_eq!(say(&mut stream, "a").unwrap(), "a");
    link.set(Fault::Reset);
    assert_eq!(stream.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut new = connect(&link);
    assert_eq!(new.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    link.set(Fault::None);
    let mut stream = connect(&link);
    assert_eq!(say(&mut stream, "b").unwrap(), "b");
    link.reset_once();
    assert!(stream.read(&mut [0; 1]).is_err());
    assert_eq!(say(&mut connect(&link), "c").unwrap(), "c");
}

#[test]
fn a_throttled_link_takes_its_time_and_hurries_afterwards() {
    let link = link();
    let mut stream = connect(&link);
    assert_eq!(say(&mut stream, "a").unwrap(), "a");
    link.set(Fault::Throttle { bytes_per_second: 50 });
    let watch = Stopwatch::start();
    // Five bytes up, and the last of them down again.
    assert_eq!(say(&mut stream, "12345").unwrap(), "12345");
    assert!(watch.elapsed() >= Duration::from_millis(119), "{:?}", watch.elapsed());
    link.set(Fault::Throttle { bytes_per_second: 1 });
    stream.write_all(b"a minute's worth at this speed, or thereabouts").unwrap();
    assert!(is_silent(&mut stream));
    link.set(Fault::None);
    let mut received = [0; 46];
    stream.read_exact(&mut received).unwrap();
    assert!(received.ends_with(b"thereabouts"));
}

#[test]
fn a_delay_counts_in_both_directions() {
    let link = link();
    let mut stream = connect(&link);
    link.set(Fault::Delay(Duration::from_millis(20)));
    let watch = Stopwatch::start();
    assert_eq!(say(&mut stream, "far away").unwrap(), "far away");
    assert!(watch.elapsed() >= Duration::from_millis(39), "{:?}", watch.elapsed());
}

#[test]
fn a_cut_connection_has_delivered_its_last_bytes() {
    let link = link();
    let mut stream = connect(&link);
    assert_eq!(say(&mut stream, "a").unwrap(), "a");
    link.set(Fault::CutAfter(3));
    stream.write_all(b"12345").unwrap();
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received);
    assert_eq!(received, b"123");
}

#[test]
fn a_garbled_answer_has_its_length_and_nothing_else() {
    let link = link();
    let mut stream = connect(&link);
    link.set(Fault::Garble);
    assert_ne!(say(&mut stream, "hello").unwrap(), "hello");
}

#[test]
fn a_target_that_is_gone_ends_the_connection() {
    let target = crate::ports::free_addrs(1).unwrap()[0];
    let link = FaultyLink::to(target).unwrap();
    let mut stream = connect(&link);
    assert!(!matches!(stream.read(&mut [0; 1]), Ok(1..)));
}

#[test]
fn dropping_it_closes_everything() {
    let link = link();
    let addr = link.addr();
    let mut stream = connect(&link);
    assert_eq!(say(&mut stream, "a").unwrap(), "a");
    drop(link);
    assert!(!matches!(stream.read(&mut [0; 1]), Ok(1..)));
    wait_until(PATIENCE, || TcpStream::connect(addr).is_err()).unwrap();
}
