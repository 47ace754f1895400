//! hyper and tokio-postgres with prepared statements, as a good engineer writes a service without further requirements.
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, LINK, LOCATION};
use hyper::service::{make_service_fn, service_fn};
use hyper::{Body, Method, Request, Response, Server};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::env::var;
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{to_sql_checked, FromSql, IsNull, Kind, ToSql, Type};
use tokio_postgres::{Client, NoTls, Row, Statement};

const COLUMNS: &str = "id, name, category_id, status";
const PETS: &str = "http://localhost:3000/v1/pets";

type AnyError = Box<dyn Error + Send + Sync>;

/// A value of the enum `pet_status`; PostgreSQL sends and receives it as text.
#[derive(Debug, Deserialize, Serialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Status {
    Available,
    Pending,
    Sold,
}

impl Status {
    fn parse(text: &str) -> Option<Status> {
        match text {
            "available" => Some(Status::Available),
            "pending" => Some(Status::Pending),
            "sold" => Some(Status::Sold),
            _ => None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Status::Available => "available",
            Status::Pending => "pending",
            Status::Sold => "sold",
        }
    }
}

impl<'a> FromSql<'a> for Status {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, AnyError> {
        Status::parse(std::str::from_utf8(raw)?).ok_or_else(|| "unknown status".into())
    }

    fn accepts(kind: &Type) -> bool {
        matches!(kind.kind(), Kind::Enum(_))
    }
}

impl ToSql for Status {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        out.extend_from_slice(self.text().as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        matches!(kind.kind(), Kind::Enum(_))
    }

    to_sql_checked!();
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pet<'a> {
    id: i64,
    name: &'a str,
    category_id: i64,
    status: Status,
}

fn to_pet(row: &Row) -> Pet<'_> {
    Pet {
        id: row.get(0),
        name: row.get(1),
        category_id: row.get(2),
        status: row.get(3),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewPet {
    name: String,
    category_id: i64,
    status: Option<Status>,
}

#[derive(Serialize)]
struct Failure {
    code: &'static str,
    message: &'static str,
    status: u16,
}

/// A connection to PostgreSQL with its prepared statements. It sends statements without waiting for earlier results.
struct Connection {
    client: Client,
    list: Statement,
    list_after: Statement,
    list_status: Statement,
    list_status_after: Statement,
    get: Statement,
    create: Statement,
}

impl Connection {
    async fn open(url: &str) -> Result<Connection, AnyError> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let list =
            |condition: &str| format!("SELECT {COLUMNS} FROM pet {condition} ORDER BY id LIMIT $1");
        let insert = "INSERT INTO pet (name, category_id, status) VALUES ($1, $2, $3) RETURNING";
        Ok(Connection {
            list: client.prepare(&list("")).await?,
            list_after: client.prepare(&list("WHERE id > $2")).await?,
            list_status: client.prepare(&list("WHERE status = $2")).await?,
            list_status_after: client
                .prepare(&list("WHERE status = $2 AND id > $3"))
                .await?,
            get: client
                .prepare(&format!("SELECT {COLUMNS} FROM pet WHERE id = $1"))
                .await?,
            create: client.prepare(&format!("{insert} {COLUMNS}")).await?,
            client,
        })
    }
}

struct App {
    connections: Vec<Connection>,
    next: AtomicUsize,
    authorization: String,
}

fn send(status: u16, body: &impl Serialize) -> Result<Response<Body>, AnyError> {
    let text = serde_json::to_vec(body)?;
    Ok(Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(text))?)
}

fn fail(
    status: u16,
    code: &'static str,
    message: &'static str,
) -> Result<Response<Body>, AnyError> {
    send(
        status,
        &Failure {
            code,
            message,
            status,
        },
    )
}

impl App {
    fn connection(&self) -> &Connection {
        &self.connections[self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len()]
    }

    async fn list(&self, query: &str) -> Result<Response<Body>, AnyError> {
        let (mut limit, mut status, mut after) = (20i64, None, None);
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "limit" => limit = value.parse().unwrap_or(0),
                "cursor" => after = value.parse::<i64>().ok(),
                "status" => match Status::parse(value) {
                    None => return fail(400, "invalid_parameter", "status"),
                    known => status = known,
                },
                _ => {}
            }
        }
        if !(1..=100).contains(&limit) {
            return fail(400, "invalid_parameter", "limit");
        }
        let connection = self.connection();
        let client = &connection.client;
        // One row more than the page shows whether there is a next page.
        let more = limit + 1;
        let rows = match (&status, &after) {
            (None, None) => client.query(&connection.list, &[&more]).await?,
            (None, Some(id)) => client.query(&connection.list_after, &[&more, id]).await?,
            (Some(status), None) => {
                client
                    .query(&connection.list_status, &[&more, status])
                    .await?
            }
            (Some(status), Some(id)) => {
                client
                    .query(&connection.list_status_after, &[&more, status, id])
                    .await?
            }
        };
        let pets: Vec<Pet> = rows.iter().take(limit as usize).map(to_pet).collect();
        let mut response = send(200, &pets)?;
        if rows.len() > pets.len() {
            let filter =
                status.map_or(String::new(), |status| format!("&status={}", status.text()));
            let last = pets.last().map_or(0, |pet| pet.id);
            let link = format!("<{PETS}?limit={limit}{filter}&cursor={last}>; rel=\"next\"");
            response.headers_mut().insert(LINK, link.parse()?);
        }
        Ok(response)
    }

    async fn get(&self, id: &str) -> Result<Response<Body>, AnyError> {
        let connection = self.connection();
        let row = match id.parse::<i64>() {
            Ok(id) => connection.client.query_opt(&connection.get, &[&id]).await?,
            Err(_) => None,
        };
        match row {
            Some(row) => send(200, &to_pet(&row)),
            None => fail(404, "pet_not_found", "not found"),
        }
    }

    async fn create(&self, body: Body) -> Result<Response<Body>, AnyError> {
        let bytes = hyper::body::to_bytes(body).await?;
        let pet: NewPet = match serde_json::from_slice(&bytes) {
            Ok(pet) => pet,
            Err(_) => return fail(400, "validation_failed", "name and categoryId are required"),
        };
        if !(1..=255).contains(&pet.name.chars().count()) {
            return fail(400, "validation_failed", "name");
        }
        let status = pet.status.unwrap_or(Status::Available);
        let connection = self.connection();
        let row = connection
            .client
            .query_one(&connection.create, &[&pet.name, &pet.category_id, &status])
            .await?;
        let pet = to_pet(&row);
        let mut response = send(201, &pet)?;
        response
            .headers_mut()
            .insert(LOCATION, format!("{PETS}/{}", pet.id).parse()?);
        Ok(response)
    }

    async fn route(&self, request: Request<Body>) -> Result<Response<Body>, AnyError> {
        let key = request
            .headers()
            .get(AUTHORIZATION)
            .map(|value| value.as_bytes());
        if key != Some(self.authorization.as_bytes()) {
            return fail(401, "invalid_api_key", "no key");
        }
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/v1/pets") => self.list(request.uri().query().unwrap_or("")).await,
            (&Method::POST, "/v1/pets") => self.create(request.into_body()).await,
            (&Method::GET, path) if path.starts_with("/v1/pets/") => {
                self.get(&path["/v1/pets/".len()..]).await
            }
            _ => fail(404, "route_not_found", "not found"),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let size: usize = var("DATABASE_POOL_SIZE")?.parse()?;
    let url = var("DATABASE_URL")?;
    let mut connections = Vec::with_capacity(size);
    for _ in 0..size {
        connections.push(Connection::open(&url).await?);
    }
    let authorization = format!("Bearer {}", var("BOOTSTRAP_API_KEY")?);
    let app = Arc::new(App {
        connections,
        next: AtomicUsize::new(0),
        authorization,
    });
    let service = make_service_fn(move |_| {
        let app = app.clone();
        async move {
            Ok::<_, Infallible>(service_fn(move |request| {
                let app = app.clone();
                async move {
                    app.route(request).await.or_else(|error| {
                        eprintln!("{error}");
                        fail(500, "internal_error", "failed")
                    })
                }
            }))
        }
    });
    let address = format!("127.0.0.1:{}", var("PORT")?).parse()?;
    Server::bind(&address)
        .tcp_nodelay(true)
        .serve(service)
        .await?;
    Ok(())
}
