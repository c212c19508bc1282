use super::{Channel, ChannelError, Received};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A message that says its own length in its first byte; 200 and more are too many.
fn framing(bytes: &[u8]) -> Option<usize> {
    match bytes.first() {
        None => Some(1),
        Some(&length) => (length < 200).then_some(usize::from(length.max(1))),
    }
}

fn pair() -> (Channel, Channel) {
    let (one, other) = UnixStream::pair().unwrap();
    let channel =
        |stream: UnixStream| Channel::new(stream.into(), framing, Duration::from_secs(1)).unwrap();
    (channel(one), channel(other))
}

fn message(channel: &mut Channel) -> super::Message {
    match channel.receive() {
        Ok(Received::Message(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_and_their_descriptors_stay_together() {
    let (near, mut far) = pair();
    let file = tempfile::tempfile().unwrap();
    near.send(&[3, 1, 2], &[]).unwrap();
    near.send(&[2, 9], &[file.as_fd(), file.as_fd()]).unwrap();
    near.send(&[1], &[]).unwrap();
    let first = message(&mut far);
    assert_eq!(
        (first.bytes.as_slice(), first.descriptors.len()),
        (&[3, 1, 2][..], 0)
    );
    let second = message(&mut far);
    assert_eq!(
        (second.bytes.as_slice(), second.descriptors.len()),
        (&[2, 9][..], 2)
    );
    assert_eq!(message(&mut far).bytes, [1]);
    assert!(matches!(far.receive(), Ok(Received::Nothing)));
    drop(near);
    assert!(matches!(far.receive(), Ok(Received::Closed)));
}

#[test]
fn a_message_may_come_in_pieces_but_not_in_half() {
    let (near, mut far) = pair();
    near.send(&[4], &[]).unwrap();
    assert!(matches!(far.receive(), Ok(Received::Nothing)));
    near.send(&[1, 2], &[]).unwrap();
    assert!(matches!(far.receive(), Ok(Received::Nothing)));
    near.send(&[3, 4], &[]).unwrap();
    assert_eq!(message(&mut far).bytes, [4, 1, 2, 3]);
    drop(near);
    assert!(matches!(far.receive(), Err(ChannelError::Truncated)));
}

#[test]
fn a_length_that_no_message_has_is_an_error() {
    let (near, mut far) = pair();
    near.send(&[201], &[]).unwrap();
    assert!(matches!(far.receive(), Err(ChannelError::Length)));
}

#[test]
fn who_has_gone_takes_nothing() {
    let (near, far) = pair();
    drop(far);
    assert!(matches!(near.send(&[1], &[]), Err(ChannelError::Gone)));
}
