//! One client's connection, from its first request to its end.

use std::net::IpAddr;

use tokio::net::TcpStream;
use tollgate_listen::Watch;

use crate::{
    client::{After, Client, Next},
    exchange,
    gateway::Gateway,
};

/// Serves a connection until one side has had enough.
pub(crate) async fn serve(gateway: &Gateway, stream: TcpStream, peer: IpAddr, watch: &Watch) {
    let mut client = Client::new(stream, peer);
    loop {
        let after = match client.next(gateway, watch).await {
            Next::Request => exchange::serve(gateway, &mut client, watch).await,
            Next::Refused(refusal) => exchange::refuse(gateway, &mut client, watch, refusal).await,
            Next::Gone => After::Close,
        };
        if after != After::Keep {
            client.end(after, gateway, watch).await;
            return;
        }
    }
}
