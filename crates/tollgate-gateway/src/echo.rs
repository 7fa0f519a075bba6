//! `builtin:echo`: an upstream for trying things out, which answers with what it was sent.

use std::future::poll_fn;

use http::StatusCode;
use serde_json::{Map, Value, json};
use tollgate_listen::Watch;

use crate::{
    client::{After, Client},
    forward::Shown,
    gateway::Gateway,
    h1::body::Body,
    reply::Reply,
    story::Story,
};

/// Answers with the request, in JSON.
pub(crate) async fn answer(
    gateway: &Gateway,
    client: &mut Client,
    watch: &Watch,
    story: &mut Story,
    shown: Shown<'_>,
) -> After {
    let length = match length(gateway, client, watch).await {
        Ok(length) => length,
        Err(status) => {
            client.request.keep_alive = false;
            let reply = Reply::problem(gateway, status, story).with_limit(shown);
            return reply.send(gateway, client, watch, story).await;
        }
    };
    let text = format!("{:#}\n", told(client, story, length));
    // The body was read here, so that none is left to skip.
    client.request.framing = crate::h1::body::Framing::Empty;
    Reply::json(gateway, &text).with_limit(shown).send(gateway, client, watch, story).await
}

fn told(client: &Client, story: &Story, length: u64) -> Value {
    let request = &client.request;
    let mut headers = Map::new();
    for line in request.lines() {
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let name = text(line.name(request.bytes())).to_ascii_lowercase();
        headers.insert(name, text(line.value(request.bytes())).into());
    }
    json!({
        "method": request.method().as_str(),
        "path": request.path(),
        "query": request.query(),
        "headers": headers,
        "body_bytes": length,
        "client": story.client.to_string(),
        "correlation_id": story.id.as_str(),
    })
}

/// Reads the body to its end and forgets it; says how long it was.
async fn length(gateway: &Gateway, client: &mut Client, watch: &Watch) -> Result<u64, StatusCode> {
    let (config, buffers) = (gateway.config(), &gateway.buffers);
    let mut body = Body::new(client.request.framing);
    if client.request.expects_continue && !body.is_done() {
        client.output.buffer(buffers).extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        client.flush(gateway, watch).await;
        client.request.expects_continue = false;
    }
    let mut length = 0;
    while !body.is_done() {
        let piece = body.next(client.input.unread()).map_err(|_| StatusCode::BAD_REQUEST)?;
        client.input.consume(piece.skip + piece.data);
        length += piece.data as u64;
        if config.max_body_bytes.is_some_and(|max| length > max) {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        if client.input.unread().is_empty() && !body.is_done() {
            watch.set(config.body_timeout);
            let fill = poll_fn(|cx| client.input.poll_fill(cx, &mut client.stream, buffers));
            match watch.bound(fill).await {
                Ok(Ok(count)) if count > 0 => {}
                Ok(_) => return Err(StatusCode::BAD_REQUEST),
                Err(_) => return Err(StatusCode::REQUEST_TIMEOUT),
            }
        }
    }
    Ok(length)
}
