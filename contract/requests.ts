import { readTable } from './table.js';

/** API keys, routes, and HTTP itself, whatever the operation. `table.ts` explains the notation. */
export const REQUESTS = readTable(
  'contract/requests.ts',
  String.raw`
## Every response
every response | [X-Content-Type-Options: nosniff] [X-Request-Id: *] [Server: -] [X-Powered-By: -] [Strict-Transport-Security: -] | S11 S15
every response | only accept accept-encoding access-control-allow-headers access-control-allow-methods access-control-allow-origin access-control-expose-headers access-control-max-age allow cache-control connection content-length content-security-policy content-type cross-origin-opener-policy date deprecation etag idempotent-replayed keep-alive link location ratelimit ratelimit-policy referrer-policy retry-after sunset vary www-authenticate x-content-type-options x-request-id | S11
every 200 304 of /v1/ | [Cache-Control: private, no-cache] [Vary: **Authorization] [ETag: W/"*"] | S13
every 201 | [Cache-Control: no-store] [ETag: -] | S13
every 200 of /health/ | [Cache-Control: no-store] | S13
every 200 of /metrics | [Cache-Control: no-store] | S13
every 4xx 5xx | [Content-Type: application/json] [Cache-Control: no-store] [ETag: -] | S13
every 401 | [WWW-Authenticate: Bearer realm="*"**]
every 405 | [Allow: *OPTIONS*]
every 4xx 5xx | never "message":.*(\b(select|insert|relation|column|constraint|syntax|statement|query failed)\b|\b(category_id|schema_migration|key_usage|pgcode|sqlstate)\b) | S16
every 4xx 5xx | never typeorm|nestjs|\bnest\b|express|\bpg\b|pglite|postgres|pino|class-validator|swagger|node_modules|node:|node\.js|llhttp|HPE_ | S16
every 4xx 5xx | never "message":"(?!No resource has).*(/src/|/dist/|/tmp/|/home/|\bat \S+ \(|\bstack\b|\w(?<!server_|internal_|client_)(error|exception)\b|\b(enoent|econn\w+)\b|127\.0\.0\.1|fetch failed|\bundefined\b|\[object|hidden_column) | S16

## API keys
‹GET ¦ POST ¦ GET› /v1/pets‹ ¦  ¦ /1› [Authorization: -] | 401 missing_api_key This request needs an API key: send one header, Authorization: Bearer <API key>. [WWW-Authenticate: Bearer realm="petstore"] | Authentication
GET /v1/pets [Authorization: ‹Basic cGV0czpwZXRz ¦ Bearer ¦ Bearer  ¦ pets_secret ¦ Digest username="x" ¦ ›] | 401 missing_api_key **Authorization: Bearer <API key>** [WWW-Authenticate: Bearer realm="petstore"]
GET /v1/pets [Authorization: Bearer ‹"$key" ¦ '$key' ¦ Bearer $key ¦ a b ¦ ä›] | 401 invalid_api_key ‹The API key stands in quotation marks; send it without them. ¦ The API key stands in quotation marks; send it without them. ¦ The word Bearer stands twice before the API key. ¦ There is a space within the API key. ¦ The API key has a character that no key has.› [WWW-Authenticate: Bearer realm="petstore", error="invalid_token", **]
‹GET ¦ POST ¦ GET ¦ HEAD› /v1/pets‹ ¦  ¦ /1 ¦ › [Authorization: Bearer unknown-key-unknown-key] | 401‹ invalid_api_key The API key is not known. ¦  invalid_api_key The API key is not known. ¦  invalid_api_key The API key is not known. ¦ › [WWW-Authenticate: Bearer realm="petstore", error="invalid_token", error_description="The API key is not known"] | Authentication
GET /v1/pets [Authorization: Bearer $key] [Authorization: Bearer $key] | 401 missing_api_key
GET /v1/pets?access_token=$key [Authorization: -] [X-Api-Key: $key] [Proxy-Authorization: Bearer $key] | 401 missing_api_key
GET /v1/pets [Authorization: ‹bearer ¦ BEARER ¦ Bearer › $key] | 200
GET /v1/pets [Authorization: Bearer ‹$expired ¦ $revoked›] | 401 ‹expired_api_key ¦ revoked_api_key› [WWW-Authenticate: Bearer realm="petstore", error="invalid_token", **]
GET /v1/pets [Authorization: Bearer $reader] | 200
POST /v1/pets [Authorization: Bearer $reader] not even JSON | 403 insufficient_scope The API key lacks the scope pets:write. [WWW-Authenticate: Bearer realm="petstore", error="insufficient_scope", scope="pets:write"] | D41 S5
GET /metrics | 403 insufficient_scope
GET /metrics [Authorization: -] | 401 missing_api_key
POST /v1/pets [Authorization: -] (x×1048576) | 401 missing_api_key [Connection: close] | D41
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Content-Type: application/json⏎Content-Length: 1000⏎‹⏎{ ¦ Expect: 100-continue⏎⏎› | 401 missing_api_key | D41
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Transfer-Encoding: chunked⏎⏎not-hex⏎ | 401 missing_api_key | D41
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎Connection: close⏎Content-Length: 29⏎Expect: 100-continue⏎⏎…{"name":"Rex","categoryId":7} | 100 201 | D41

## Routes and methods
GET /pets‹ ¦ /1 ¦ /1/toys› [Authorization: -] | 404 route_not_found ‹No resource has the path /pets; one has /v1/pets ¦ No resource has the path /pets/1; one has /v1/pets/1 ¦ No resource has the path /pets/1/toys› | D41
GET ‹/v1 ¦ /v1/ ¦ /v1/cats ¦ /v1/unknown ¦ /v1/pets/ ¦ /v1/pets/1/ ¦ /v1/pets/1/toys ¦ /v1/Pets ¦ /V1/pets ¦ /v2/pets ¦ //v1/pets ¦ /v1//pets ¦ /v1/pets%2F1 ¦ /v1/pets/%ff ¦ /v1/pets/%zz ¦ /favicon.ico› [Authorization: -] | 404 route_not_found | D41
‹PUT ¦ PATCH ¦ DELETE ¦ TRACE ¦ PROPFIND› /v1/pets [Authorization: -] | 405 method_not_allowed [Allow: GET, HEAD, OPTIONS, POST] | D41
‹POST ¦ PUT ¦ PATCH ¦ DELETE› /v1/pets/1 [Authorization: -] | 405 method_not_allowed [Allow: GET, HEAD, OPTIONS] | D41
OPTIONS /v1/pets‹ ¦ /1› [Authorization: -] | 204 [Allow: GET, HEAD, OPTIONS‹, POST ¦ ›]
OPTIONS * | 204 [Allow: *GET, HEAD, OPTIONS,*POST*]
GET /‹%76%31/%70%65ts ¦ v1/%70ets?limit=1 ¦ v1/p%65%54%73 ¦ %68ealth/%6Cive› | ‹200 ¦ 200 ¦ 404 ¦ 200› | D352
GET http://x/%761/pets | 200 | D352
GET ‹http://x/v1 ¦ /v1›\pets | 404 route_not_found | D352
given 2 sold: GET /v1/%70ets?limit=1&status=%73old | 200 [Link: <$base/pets?limit=1&status=%73old&cursor=*>; rel="next"] | D352
GET /v1/pets/‹%31%32%33%34%35%36%37%38%39%30%31%32%33 ¦ %2D1 ¦ %61bc ¦ %2e%2e ¦ .› | 404 pet_not_found | D352
PUT /v1/%70ets | 405 method_not_allowed [Allow: GET, HEAD, OPTIONS, POST] | D352
OPTIONS /v1/%70ets | 204 [Allow: GET, HEAD, OPTIONS, POST] | D352
‹GET ¦ POST ¦ GET› /‹v1/%70ets ¦ %761/pets ¦ %6detrics› [Authorization: -] | 401 missing_api_key | D352
GET /‹v1%2Fpets ¦ v1%2fpets ¦ v1/%2570ets ¦ v1/%2e%2e/v1/pets ¦ v1/%2e/pets ¦ v1/%%370ets ¦ v1/%7 ¦ v1/pets%3Flimit=1 ¦ v1/pets%23 ¦ docs%2Fguide ¦ docs/assets/%2e%2e%2fguide.js ¦ ;/%64ocs› [Authorization: -] | 404 route_not_found | D352
GET ‹/v1/pet%73# ¦ %2Fv1/pets ¦ %68ttp://x/v1/pets› | 400 bad_request | D352
GET /v1/‹pets ¦ nowhere› [X-Request-Id: ‹A-z_0.9 ¦ (x×128)›] | ‹200 ¦ 404› [X-Request-Id: ‹A-z_0.9 ¦ (x×128)›]
GET /v1/nowhere [X-Request-Id: ‹(x×129) ¦ a b ¦ a"b ¦ ä ¦ ›] | 404 route_not_found [X-Request-Id: *-*-*-*-*]
GET /v1/pets [Origin: https://app.example.com] | 200 [Access-Control-Allow-Origin: -] | S8

## HTTP
raw ‹\x16\x03\x01\x02\x00\x01⏎⏎ ¦ GARBAGE⏎⏎ ¦ SSH-2.0-OpenSSH_9.2⏎⏎ ¦ GET /v1/pets⏎⏎ ¦ GET /v1/pets SPDY/3⏎Host: x⏎⏎ ¦ PRI * HTTP/2.0⏎⏎SM⏎⏎ ¦ FETCH /v1/pets HTTP/1.1⏎Host: x⏎⏎› | 400 bad_request [Connection: close]
raw GET /health/live ‹HTTP/0.9 ¦ HTTP/1.2 ¦ RTSP/2.0›⏎Host: x⏎⏎ | 400 bad_request The request must be HTTP/1.1 or HTTP/1.0.
raw ‹GET /health/live HTTP/1.1⏎Connection: close⏎⏎ ¦ GET /health/live HTTP/1.1⏎Host: a⏎Host: b⏎Connection: close⏎⏎ ¦ GET /health/live HTTP/1.0⏎Host: a⏎Host: a⏎⏎› | 400 bad_request
GET /health/live [Host: ‹x y ¦ a/b ¦ a#b ¦ u@h ¦ x:abc ¦ x%zz ¦ "x" ¦ ::1 ¦ ä ¦ a, b›] | 400 bad_request
raw GET /health/live HTTP/1.1⏎Host: ‹[::1 ¦ [1.2.3.4] ¦ [::1]:a›⏎Connection: close⏎⏎ | 400 bad_request
GET /health/live [Host: ‹ ¦ x ¦ x: ¦ :80 ¦ Pets.Example ¦ a-b_c~d ¦ x%20y ¦ 127.0.0.1:3000›] | 200
raw GET /health/live HTTP/1.1⏎Host: ‹[2001:DB8::1] ¦ [::1]:3000›⏎Connection: close⏎⏎ | 200
GET ‹/health/live# ¦ /health/live?a#b ¦ ftp://x/health/live ¦ urn:x ¦ health/live ¦ ?a ¦ * ¦ http:///health/live ¦ http://u:p@x/health/live ¦ http://x:y/health/live ¦ http://[::1/health/live› | 400 bad_request
GET ‹http://x/health/live ¦ HTTP://y:80/health/live ¦ https://[::1]/health/live ¦ http://xn--a/health/live ¦ http://x%20y/health/live ¦ /health/live?%23=://› | 200
raw CONNECT x:443 HTTP/1.1⏎Host: x:443⏎⏎GET /hidden HTTP/1.1⏎Host: x⏎⏎ | 400 bad_request [Connection: close]
raw GET /v1/pets HTTP/1.1⏎Host: x⏎‹Authorization⏎ ¦ X-A: a⏎ b⏎›⏎ | 400 bad_request
POST /v1/pets [Content-Type: application/json] [Content-Type: text/plain] {} | 400 bad_request
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎‹Content-Length: 29⏎Transfer-Encoding: chunked ¦ Transfer-Encoding: chunked, identity ¦ Transfer-Encoding: gzip, chunked›⏎⏎1d⏎{"name":"Rex","categoryId":7}⏎0⏎⏎GET /hidden HTTP/1.1⏎Host: x⏎⏎ | 400 bad_request [Connection: close]
raw POST /v1/pets HTTP/1.0⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎Transfer-Encoding: chunked⏎⏎1d⏎{"name":"Rex","categoryId":7}⏎0⏎⏎GET /hidden HTTP/1.1⏎Host: x⏎⏎ | 400 bad_request [Connection: close]
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎Content-Length‹:29⏎Content-Length: 0 ¦  : 29 ¦ : -1 ¦ : 2, 3›⏎⏎{"name":"Rex","categoryId":7}GET /hidden HTTP/1.1⏎Host: x⏎⏎ | 400 bad_request [Connection: close]
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎Transfer-Encoding: chunked⏎⏎‹not-hex⏎ ¦ 5⏎{"nam⏎not-hex⏎ ¦ 1d⏎{"name":"Rex","categoryId":7}0⏎⏎ ¦ 1d;a\x0a{"name":"Rex","categoryId":7}⏎0⏎⏎›GET /hidden HTTP/1.1⏎Host: x⏎⏎ | 400 bad_request [Connection: close]
raw POST /v1/pets HTTP/1.1\x0aHost: x\x0aAuthorization: Bearer $key\x0aContent-Type: application/json\x0aContent-Length: 29\x0a\x0a{"name":"Rex","categoryId":7}GET /hidden HTTP/1.1⏎Host: x⏎⏎ | 400 bad_request The request is not valid HTTP/1.1. [Connection: close]
raw ‹GET   /v1/pets   HTTP/1.1 ¦ GET /v1/pets RTSP/1.1›⏎Host: x⏎Authorization: Bearer $key⏎⏎GET /hidden HTTP/1.0⏎⏎ | 200 404
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎Transfer-Encoding: chunked⏎⏎1d;a=b⏎{"name":"Rex","categoryId":7}⏎0⏎⏎GET /hidden HTTP/1.0⏎⏎ | 201 404
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎Transfer-Encoding: chunked⏎⏎1;(x×20000)⏎ | 413 body_too_large [Connection: close]
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Connection: close⏎Content-Length: 29⏎(x:⏎×1500)‹Authorization: Bearer $key ¦ Host: y ¦ Content-Encoding: gzip›⏎Content-Type: application/json⏎⏎{"name":"Rex","categoryId":7} | ‹401 missing_api_key ¦ 400 bad_request ¦ 415 unsupported_media_type›
GET /v1/pets?(x×8192) | 414 uri_too_long
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Expect: miracles⏎Connection: close⏎⏎ | 417 expectation_failed
raw GET /v1/pets HTTP/1.1⏎Host: x⏎X-Large: (x×20000)⏎⏎ | 431 headers_too_large
raw ‹GET /v1/pets HTTP/1.1⏎Host: x⏎ ¦ POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎Content-Length: 29⏎⏎{› | 408 request_timeout [Connection: close]

## HTTP: several requests on a connection
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎Content-Length: 29⏎⏎{"name":"Rex","categoryId":7}POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎X-Request-Id: broken⏎Transfer-Encoding: chunked⏎⏎not-hex⏎GET /health/live HTTP/1.1⏎Host: x⏎⏎ | 201 ‹400› bad_request [X-Request-Id: broken] [Connection: close]
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎Content-Length: 29⏎⏎{"name":"Rex","categoryId":7}‹BROKEN⏎⏎ ¦ GET /health/live HTTP/1.1⏎Host: x⏎X: (x×20000)⏎⏎›GET /health/live HTTP/1.1⏎Host: x⏎⏎ | 201
raw GET /health/live HTTP/1.1⏎Host: x⏎‹Connection: Upgrade, HTTP2-Settings⏎Upgrade: h2c⏎HTTP2-Settings: AAMAAABk ¦ Connection: Upgrade⏎Upgrade: websocket⏎Sec-WebSocket-Version: 13›⏎⏎‹ ¦ no HTTP at all⏎⏎›…GET /health/live HTTP/1.1⏎Host: x⏎⏎ | 200 [Connection: close] | D112
raw POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Content-Type: application/json⏎Connection: Upgrade⏎Upgrade: h2c⏎‹Content-Length: 29⏎⏎{"name":"Rex","categoryId":7} ¦ Content-Length: 29⏎⏎{"nam…e":"Rex","categoryId":7} ¦ Content-Length: 29⏎⏎…{"name":"Rex","categoryId":7}… ¦ Transfer-Encoding: chunked⏎⏎1d⏎{"name":"Rex","categoryId":7}⏎0⏎⏎›POST /v1/pets HTTP/1.1⏎Host: x⏎Authorization: Bearer $key⏎Idempotency-Key: $unique⏎Content-Type: application/json⏎Content-Length: 29⏎⏎{"name":"Rex","categoryId":7} | 201 [Connection: close] | D112
then POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex","categoryId":7} | 201 [Idempotent-Replayed: -]

## Health, files
GET /health/‹live ¦ ready› [Authorization: -] | 200 {"status":"ok"}
GET /metrics [Authorization: Bearer $metrics] | 200 [Content-Type: text/plain; version=0.0.4**] **petstore_**
GET /v1/pets [Authorization: Bearer $metrics] | 403 insufficient_scope
GET /docs/assets‹ ¦ / ¦ /docs.ts ¦ /package.json ¦ /constructor ¦ /__proto__ ¦ /reference.js%00.css ¦ /reference.js/ ¦ /REFERENCE.JS ¦ /. ¦ /../reference.js ¦ /../../openapi.json ¦ /..%2f..%2f..%2fpackage.json ¦ /%2e%2e/%2e%2e/.env ¦ /..%5c..%5c.env ¦ /....//....//etc/passwd ¦ /..%252f..%252fetc%252fpasswd ¦ /%2fetc%2fpasswd ¦ //etc/passwd› | 404 route_not_found | S19
GET ‹/docs/../.env ¦ /../../etc/passwd ¦ /.git/config ¦ /dist/src/main.js ¦ /package.json ¦ /.env› | 404 route_not_found | S19

## Links below a path (PUBLIC_BASE_URL=https://api.example.com/store/v1)
GET /v1/pets/$id | 200 [Link: <https://api.example.com/store/v1/pets>; rel="successor-version", <https://api.example.com/store/docs/deprecations#getPet>; rel="deprecation"; type="text/html"]
POST /v1/pets {"name":"Rex","categoryId":7} | 201 [Location: https://api.example.com/store/v1/pets/$id]
given 2 sold: GET /v1/pets?limit=1 | 200 [Link: <https://api.example.com/store/v1/pets?limit=1&cursor=*>; rel="next"]

## CORS (CORS_ORIGINS=https://app.example.com,http://localhost:5173)
OPTIONS /v1/pets‹ ¦ /1› [Authorization: -] [Origin: https://app.example.com] [Access-Control-Request-Method: PUT] [Access-Control-Request-Headers: x-unknown] | 204 [Allow: GET, HEAD, OPTIONS‹, POST ¦ ›] [Access-Control-Allow-Methods: GET, HEAD, OPTIONS‹, POST ¦ ›, PUT] [Access-Control-Allow-Origin: https://app.example.com] [Access-Control-Max-Age: 3600] [Access-Control-Allow-Headers: x-unknown] [Vary: Origin, Access-Control-Request-Headers] | D351
OPTIONS /v1/pets [Origin: https://app.example.com] [Access-Control-Request-Method: ‹GET ¦ x-any›] | 204 [Access-Control-Allow-Methods: GET, HEAD, OPTIONS, POST‹ ¦ , x-any›] [Access-Control-Allow-Headers: -] | D351
OPTIONS /‹v1/nowhere ¦ v1/pets/ ¦ v1/pets/%ff ¦ nowhere ¦ v1/pets?(x×8192)› [Authorization: -] [Origin: https://app.example.com] [Access-Control-Request-Method: DELETE] [Access-Control-Request-Private-Network: true] | 204 [Allow: ‹- ¦ - ¦ - ¦ - ¦ GET, HEAD, OPTIONS, POST›] [Access-Control-Allow-Methods: ‹ ¦  ¦  ¦  ¦ GET, HEAD, OPTIONS, POST, ›DELETE] [Access-Control-Allow-Origin: https://app.example.com] [Access-Control-Allow-Private-Network: -] | D351
‹DELETE /v1/nowhere ¦ DELETE /v1/pets ¦ GET /v1/pets/%ff› [Authorization: -] [Origin: https://app.example.com] | ‹404 route_not_found ¦ 405 method_not_allowed ¦ 404 route_not_found› [Access-Control-Allow-Origin: https://app.example.com] [Access-Control-Expose-Headers: *] [Vary: Origin**] | D351
raw ‹FETCH /v1/pets HTTP/1.1⏎Host: x⏎Origin: https://app.example.com⏎⏎ ¦ GET /v1/pets HTTP/1.1⏎Host: x⏎ORIGIN:https://app.example.com ⏎X-Large: (x×20000)⏎⏎ ¦ GET /v1/pets HTTP/1.1⏎Host: x⏎Origin: https://evil.example⏎X-Large: (x×20000)⏎⏎› | ‹400 bad_request ¦ 431 headers_too_large ¦ 431 headers_too_large› [Access-Control-Allow-Origin: ‹https://app.example.com ¦ https://app.example.com ¦ -›] [Access-Control-Expose-Headers: ‹* ¦ * ¦ -›] [Vary: Origin] | D351
OPTIONS /v1/‹pets ¦ nowhere› [Origin: https://app.example.com] | ‹204 ¦ 404 route_not_found› [Allow: ‹GET, HEAD, OPTIONS, POST ¦ -›] [Access-Control-Allow-Methods: -]
OPTIONS /v1/nowhere [Origin: ‹null ¦ https://evil.example ¦ https://app.example.com.evil.example ¦ https://APP.example.com ¦ -›] [Access-Control-Request-Method: GET] | 404 route_not_found [Access-Control-Allow-Origin: -] [Access-Control-Allow-Methods: -]
OPTIONS /v1/nowhere [Origin: https://app.example.com] [Origin: https://evil.example] [Access-Control-Request-Method: GET] | 404 route_not_found [Access-Control-Allow-Origin: -] [Access-Control-Allow-Methods: -]
OPTIONS /v1/nowhere [Host: x y] [Origin: https://app.example.com] [Access-Control-Request-Method: GET] | 400 bad_request [Access-Control-Allow-Origin: https://app.example.com] [Access-Control-Allow-Methods: -]
OPTIONS /v1/pets [Origin: ‹null ¦ https://evil.example›] [Access-Control-Request-Method: GET] | 204 [Access-Control-Allow-Origin: -] [Access-Control-Allow-Methods: -]
GET /v1/pets [Origin: http://localhost:5173] | 200 [Access-Control-Allow-Origin: http://localhost:5173] [Access-Control-Expose-Headers: *] [Access-Control-Allow-Credentials: -] [Vary: Origin, Authorization]
GET /v1/pets [Origin: https://evil.example] | 200 [Access-Control-Allow-Origin: -]
GET /v1/pets [Authorization: -] [Origin: http://localhost:5173] | 401 missing_api_key [Access-Control-Allow-Origin: http://localhost:5173]
GET /v1/pets‹?(x×8192) ¦  ¦ › [Origin: https://‹app ¦ app ¦ evil›.example‹.com ¦ .com ¦ ›] ‹[X-A: b] ¦ [Host: x y] ¦ [Expect: a-miracle]› | ‹414 uri_too_long ¦ 400 bad_request ¦ 417 expectation_failed› [Access-Control-Allow-Origin: ‹https://app.example.com ¦ https://app.example.com ¦ -›] [Vary: Origin]
raw GET /health/ready HTTP/1.1⏎Host: x⏎⏎POST /v1/pets HTTP/1.1⏎Host: x⏎Origin: https://app.example.com⏎Transfer-Encoding: chunked⏎⏎not-hex⏎ | 200 ‹401› missing_api_key [Access-Control-Allow-Origin: https://app.example.com] [Access-Control-Expose-Headers: *] [Vary: Origin]
`,
);
