//! The configuration that is built in, and what a newcomer is told about it.

use std::net::SocketAddr;

pub(crate) const CONFIG: &str = include_str!("quickstart.yaml");

/// Which three commands to try first.
pub(crate) fn text(gateway: SocketAddr, http: SocketAddr) -> String {
    format!(
        r#"
Tollgate {version} is running. No configuration was named, so this is the quickstart:
a gateway in front of a built-in echo, which lets each address pass 10 times a second, 15 at once.

  gateway        http://{gateway}
  decision API   http://{http}   (/metrics, /healthz, /openapi.json)

Try, in another terminal:

  1. Pass, and see what is left in the headers:
     curl -i http://{gateway}/hello

  2. Be refused: of 20 at once, 15 pass and 5 get 429.
     seq 20 | xargs -P 20 -I{{}} curl -s -o /dev/null -w '%{{http_code}}\n' http://{gateway}/ | sort | uniq -c

  3. Ask for a decision from any language:
     curl -s http://{http}/v1/check -d '{{"policy":"quickstart","key":"ann"}}'

For a configuration of your own: tollgate run -c FILE. Ctrl-C stops.
"#,
        version = env!("CARGO_PKG_VERSION"),
    )
}
