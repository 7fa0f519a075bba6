//! Passing a request on to an upstream and its answer back.
//!
//! Both bodies flow at once: an upstream may answer before it has read everything. If it does,
//! the client's connection ends with that answer, because what it still sends belongs to nobody.
//!
//! A kept connection may die just as it is used. If not a byte of an answer has come, and the
//! request may be repeated and is still here as a whole, it is sent once more on a new one.

mod failure;
mod link;
mod rewrite;

use std::{future::poll_fn, rc::Rc, task::Poll};

use http::{Method, StatusCode};
use tokio::time::Instant;
use tollgate_core::Decision;
use tollgate_listen::Watch;

use self::{failure::Failure, link::Link};
use crate::{
    client::{After, Client},
    echo,
    gateway::Gateway,
    h1::body::Framing,
    reply::Reply,
    story::Story,
    table::{Prepared, RouteState},
    upstream::Upstream,
    wire::pump::{Ends, Pump, PumpError, extend},
};

/// The limit that an answer tells about.
pub(crate) type Shown<'a> = Option<(&'a Prepared, &'a Decision)>;

/// Passes the client's request on to one of the route's upstreams.
pub(crate) async fn forward(
    gateway: &Gateway,
    client: &mut Client,
    watch: &Watch,
    story: &mut Story,
    route: &RouteState,
    shown: Shown<'_>,
) -> After {
    let mut exchange = match Exchange::open(gateway, client, watch, story, route).await {
        Ok(Some(exchange)) => exchange,
        Ok(None) => return echo::answer(gateway, client, watch, story, shown).await,
        Err(failure) => return fail(gateway, client, watch, story, shown, failure).await,
    };
    let began = exchange.answer_head(client, story).await;
    match began.and_then(|()| exchange.begin_answer(client, story, shown)) {
        Ok(answer) => exchange.pass_answer(client, story, answer).await,
        Err(failure) => {
            exchange.leave(client);
            fail(gateway, client, watch, story, shown, failure).await
        }
    }
}

/// Answers in place of the upstream.
async fn fail(
    gateway: &Gateway,
    client: &mut Client,
    watch: &Watch,
    story: &mut Story,
    shown: Shown<'_>,
    failure: Failure,
) -> After {
    let Some((status, detail)) = failure.answer() else { return After::Close };
    tracing::debug!(
        correlation_id = %story.id,
        upstream = story.upstream.as_ref().map(|upstream| &*upstream.authority),
        cause = %failure,
        "a request was not passed on"
    );
    if failure.is_mid_body() {
        client.request.keep_alive = false;
    }
    let reply = Reply::detailed(gateway, status, detail, story).with_limit(shown);
    match reply.send(gateway, client, watch, story).await {
        After::Close if failure.is_mid_body() => After::Linger,
        after => after,
    }
}

/// A request that is with an upstream.
struct Exchange<'a> {
    gateway: &'a Gateway,
    watch: &'a Watch,
    upstream: Rc<Upstream>,
    link: Link,
    upload: Pump,
    /// Whether the upstream still takes what the client sends.
    takes: bool,
}

/// An answer on its way to the client.
struct Answer {
    framing: Framing,
    keep: bool,
    body: Pump,
}

impl<'a> Exchange<'a> {
    /// Connects to an upstream and prepares the request; nothing if it is the echo.
    async fn open(
        gateway: &'a Gateway,
        client: &mut Client,
        watch: &'a Watch,
        story: &mut Story,
        route: &RouteState,
    ) -> Result<Option<Self>, Failure> {
        let max = gateway.config().max_body_bytes;
        let request = &client.request;
        if let (Framing::Length(length), Some(max)) = (request.framing, max)
            && length > max
        {
            return Err(Failure::TooLarge);
        }
        let Some((upstream, mut link)) = link::open(gateway, watch, story, route).await? else {
            return Ok(None);
        };
        let out = link.output.buffer(&gateway.buffers);
        let trusted = gateway.trusts(client.peer);
        rewrite::push_request(out, client, trusted, story, &upstream.authority);
        let mut upload = Pump::new(request.framing, request.framing == Framing::Chunked, max);
        upload.prime(&mut client.input, &mut link.output, &gateway.buffers)?;
        if request.expects_continue && !upload.is_read() {
            let out = client.output.buffer(&gateway.buffers);
            out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        Ok(Some(Self { gateway, watch, upstream, link, upload, takes: true }))
    }

    /// Sends the request and waits for the head of its answer, on a second connection if the
    /// first turns out to be dead.
    async fn answer_head(&mut self, client: &mut Client, story: &Story) -> Result<(), Failure> {
        let is_whole = self.upload.is_done();
        let may_repeat = is_whole && is_idempotent(client.request.method());
        loop {
            let just_decided = story.decided_at.filter(|_| self.link.is_kept);
            let began = just_decided.unwrap_or_else(Instant::now);
            match self.head(client).await {
                Ok(()) => {
                    let duration = &self.gateway.context.metrics.upstream_duration;
                    duration.observe(began.elapsed());
                    self.upstream.note(Ok(()));
                    return Ok(());
                }
                Err(failure) if failure.was_stale() && self.link.is_kept && may_repeat => {
                    self.link.renew(self.gateway, self.watch, &self.upstream).await?;
                    // Whatever the old connection refused, the new one has refused nothing yet.
                    self.takes = true;
                }
                Err(failure) => {
                    if failure.is_upstreams() {
                        self.upstream.note(Err(&failure));
                    }
                    return Err(failure);
                }
            }
        }
    }

    /// Waits for a head that is not an interim one.
    async fn head(&mut self, client: &mut Client) -> Result<(), Failure> {
        let config = self.gateway.config();
        let wait =
            if self.upload.is_read() { config.response_timeout } else { config.body_timeout };
        self.watch.set(wait);
        loop {
            let length = poll_fn(|cx| self.poll_head(cx, client)).await?;
            let head = &self.link.input.unread()[..length];
            client.response.read(head, client.request.method())?;
            if !client.response.is_interim() {
                return Ok(());
            }
            // The client got its 100 from us; other interim answers confuse more clients than
            // they help.
            self.link.input.consume(length);
        }
    }

    fn poll_head(
        &mut self,
        cx: &mut std::task::Context<'_>,
        client: &mut Client,
    ) -> Poll<Result<usize, Failure>> {
        if !client.output.is_written() {
            let Client { output, stream, .. } = client;
            if let Poll::Ready(Err(_)) = output.poll_write(cx, stream, &[]) {
                return Poll::Ready(Err(Failure::ClientLeft));
            }
        }
        self.poll_upload(cx, client)?;
        if let Poll::Ready(head) = self.link.poll_head(cx, &self.gateway.buffers) {
            return Poll::Ready(head);
        }
        if self.watch.is_late() {
            return Poll::Ready(Err(self.late(client)));
        }
        Poll::Pending
    }

    /// Passes on what the client sends; notices when it has gone.
    fn poll_upload(
        &mut self,
        cx: &mut std::task::Context<'_>,
        client: &mut Client,
    ) -> Result<(), Failure> {
        let (config, buffers) = (self.gateway.config(), &self.gateway.buffers);
        let was_sent = self.upload.is_done() && self.link.output.is_written();
        if self.takes && !was_sent {
            let ends = Ends {
                from: &mut client.stream,
                input: &mut client.input,
                to: &mut self.link.stream,
                output: &mut self.link.output,
            };
            match self.upload.poll(cx, ends, buffers, extend(self.watch, config.body_timeout)) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(())) => self.watch.set(config.response_timeout),
                // It may have answered before it closed: that answer decides.
                Poll::Ready(Err(PumpError::To(_))) => self.takes = false,
                Poll::Ready(Err(error)) => return Err(error.into()),
            }
        }
        if client.poll_gone(cx, buffers, self.watch) { Err(Failure::ClientLeft) } else { Ok(()) }
    }

    /// Who is to blame for the silence.
    fn late(&self, client: &Client) -> Failure {
        let upstreams_turn =
            self.upload.is_read() || self.upload.has_data() || !self.link.output.is_written();
        if client.has_finished {
            Failure::ClientLeft
        } else if upstreams_turn || !self.takes {
            Failure::NoAnswer
        } else {
            Failure::ClientSilent
        }
    }

    /// Notes how much of the client's body is behind us, for whoever answers in our place: what
    /// follows it in the input is the next request.
    fn leave(&self, client: &mut Client) {
        client.request.framing =
            if self.upload.is_read() { Framing::Empty } else { Framing::UntilClose };
        client.request.keep_alive &= self.upload.is_read();
    }

    /// Writes the head of the answer for the client, and what has come of the body with it.
    fn begin_answer(
        &mut self,
        client: &mut Client,
        story: &Story,
        shown: Shown<'_>,
    ) -> Result<Answer, Failure> {
        let framing = rewrite::framing_back(&client.response, &client.request);
        let keep = client.request.keep_alive
            && self.upload.is_done()
            && framing != Framing::UntilClose
            && !client.has_finished
            && !self.watch.is_stopping();
        let length = self.link.head_length();
        let head = &self.link.input.unread()[..length];
        rewrite::push_response(self.gateway, client, head, framing, keep, story, shown);
        self.link.input.consume(length);
        let mut body = Pump::new(client.response.framing, framing == Framing::Chunked, None);
        match body.prime(&mut self.link.input, &mut client.output, &self.gateway.buffers) {
            Ok(()) => Ok(Answer { framing, keep, body }),
            Err(error) => {
                // Nothing was sent yet, so the client can still be told.
                client.output.clear(&self.gateway.buffers);
                Err(Failure::BadBody(error))
            }
        }
    }

    /// Passes the answer on.
    async fn pass_answer(
        mut self,
        client: &mut Client,
        story: &mut Story,
        mut answer: Answer,
    ) -> After {
        story.answered(client.response.status);
        let passed = self.pass_body(client, &mut answer.body).await;
        story.bytes = answer.body.passed();
        client.output.clear(&self.gateway.buffers);
        if passed.is_err() {
            // Where only the end of the connection tells the end of the body, it must not look
            // like one.
            let is_open_ended = answer.framing == Framing::UntilClose;
            return if is_open_ended { After::Reset } else { After::Close };
        }
        let sent = self.upload.is_done() && self.takes;
        self.link.finish(self.gateway, &self.upstream, sent && client.response.keep_alive);
        match (answer.keep, sent) {
            (true, _) => After::Keep,
            (false, true) if client.input.unread().is_empty() => After::Close,
            (false, _) => After::Linger,
        }
    }

    async fn pass_body(
        &mut self,
        client: &mut Client,
        download: &mut Pump,
    ) -> Result<(), PumpError> {
        let (config, buffers) = (self.gateway.config(), &self.gateway.buffers);
        self.watch.set(config.body_timeout);
        poll_fn(|cx| {
            let ends = Ends {
                from: &mut self.link.stream,
                input: &mut self.link.input,
                to: &mut client.stream,
                output: &mut client.output,
            };
            let moved = extend(self.watch, config.body_timeout);
            if let Poll::Ready(done) = download.poll(cx, ends, buffers, moved) {
                return Poll::Ready(done);
            }
            if self.watch.is_late() || self.poll_upload(cx, client).is_err() {
                return Poll::Ready(Err(PumpError::Cut));
            }
            Poll::Pending
        })
        .await
    }
}

/// Whether doing it twice is as good as doing it once (RFC 9110, 9.2.2).
fn is_idempotent(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::PUT | Method::DELETE | Method::OPTIONS | Method::TRACE
    )
}

/// The status that stands for a route whose upstreams are all out of reach.
const fn unreachable(tried: usize) -> StatusCode {
    // With one upstream it is that one; with several, none is left.
    if tried == 1 { StatusCode::BAD_GATEWAY } else { StatusCode::SERVICE_UNAVAILABLE }
}
