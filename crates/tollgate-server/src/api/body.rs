//! A request's body in one piece.
//!
//! Nearly every body is small and arrives with its head; hyper then hands over its read buffer
//! as one frame, and nothing is copied and no timer started here.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::{Body, Frame};

use super::reply::Failure;

/// How long a body may take. A client on a bad line sends 64 KiB in far less; one that sends a
/// byte now and then would hold its connection for ever.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Reads a body of at most `bytes_max`.
pub(crate) async fn read<B>(mut body: B, bytes_max: usize) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    let first = match std::future::poll_fn(|cx| Poll::Ready(poll_frame(&mut body, cx))).await {
        Poll::Ready(None) => return Ok(Bytes::new()),
        Poll::Ready(Some(frame)) => data(frame)?,
        Poll::Pending => Bytes::new(),
    };
    if first.len() > bytes_max {
        return Err(too_large(bytes_max));
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let rest = tokio::time::timeout(TIME_MAX, read_rest(body, first, bytes_max));
    rest.await.unwrap_or_else(|_| Err(too_slow()))
}

async fn read_rest<B>(mut body: B, first: Bytes, bytes_max: usize) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut all = BytesMut::from(first);
    while let Some(frame) = std::future::poll_fn(|cx| poll_frame(&mut body, cx)).await {
        all.extend_from_slice(&data(frame)?);
        if all.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
    }
    Ok(all.freeze())
}

fn poll_frame<B>(body: &mut B, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>>
where
    B: Body<Data = Bytes> + Unpin,
{
    Pin::new(body).poll_frame(cx)
}

/// The bytes of a frame; trailers have none.
fn data<E>(frame: Result<Frame<Bytes>, E>) -> Result<Bytes, Failure> {
    let frame = frame.map_err(|_| broken())?;
    Ok(frame.into_data().unwrap_or_default())
}

fn broken() -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, "The body ended before it was complete.")
}

fn too_large(bytes_max: usize) -> Failure {
    let detail = format!("The body is too large: at most {bytes_max} bytes.");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

fn too_slow() -> Failure {
    let detail = format!("The body did not arrive within {} seconds.", TIME_MAX.as_secs());
    Failure::new(StatusCode::REQUEST_TIMEOUT, detail)
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, convert::Infallible};

    use super::*;

    /// A body that arrives in pieces; an empty piece stands for "nothing there yet", for ever
    /// when it is the last.
    struct Pieces(VecDeque<&'static [u8]>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                None => Poll::Ready(None),
                Some([]) if self.0.is_empty() => {
                    self.0.push_back(&[]);
                    Poll::Pending
                }
                Some([]) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(piece))))),
            }
        }
    }

    #[track_caller]
    fn check(pieces: &[&'static [u8]], expected: Result<&str, &str>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let pieces = Pieces(pieces.iter().copied().collect());
        let read = runtime.block_on(read(pieces, 5));
        let shown = read.as_ref().map(|bytes| std::str::from_utf8(bytes).unwrap());
        assert_eq!(shown.map_err(Failure::detail), expected);
    }

    #[test]
    fn pieces_are_put_together() {
        check(&[], Ok(""));
        check(&[b"abc"], Ok("abc"));
        check(&[b"ab", b"", b"cd", b"e"], Ok("abcde"));
        check(&[b"", b"abcde"], Ok("abcde"));
    }

    #[test]
    fn a_body_has_at_most_so_many_bytes() {
        let expected = Err("The body is too large: at most 5 bytes.");
        check(&[b"abcdef"], expected);
        check(&[b"abc", b"def"], expected);
        check(&[b"abc", b"", b"def", b""], expected);
    }

    #[test]
    fn a_body_has_so_much_time() {
        check(&[b"abc", b""], Err("The body did not arrive within 10 seconds."));
    }
}
