import { readTable } from './table.js';

/** The three operations of the specification. `table.ts` explains the notation. */
export const PETS = readTable(
  'contract/pets.ts',
  String.raw`
## listPets
GET /v1/pets | 200 [Content-Type: application/json] [**] | List animals
given 21 sold: GET /v1/pets?status=sold | 200 [({*},×19){*}] | Limits
given 1 ‹available ¦ pending ¦ sold›: GET /v1/pets?limit=1&status=‹available ¦ pending ¦ sold› | 200 [{"id":*,"name":"*","categoryId":*,"status":"‹available ¦ pending ¦ sold›"}] | List animals
GET /v1/pets?limit=‹1 ¦ 100› | 200 | Limits
GET /v1/pets?limit=‹0 ¦ 101 ¦ -1 ¦  ¦ abc ¦ 1.5 ¦ +5 ¦ 0x10 ¦ 1e1 ¦ 05› | 400 invalid_parameter limit must be an integer between 1 and 100
GET /v1/pets?status=‹Available ¦  ¦ lost ¦ sold%00 ¦ %20sold ¦ available,sold› | 400 invalid_parameter status must be one of available, pending, sold
GET /v1/pets?‹stauts=sold ¦ Limit=5 ¦ limit[]=5› | 400 invalid_parameter unknown query parameter '‹stauts ¦ Limit ¦ limit[]›'; did you mean '‹status ¦ limit ¦ limit›'? | D17
GET /v1/pets?‹page=2 ¦ __proto__=5 ¦ limit=5(&×1200)page=2› | 400 invalid_parameter unknown query parameter '‹page ¦ __proto__ ¦ page›'; known are limit, status, cursor | D17
GET /v1/pets?limit=5&limit=5 | 400 invalid_parameter query parameter 'limit' must be given only once | D17
GET /v1/pets?status=sold&x=1&status=sold | 400 invalid_parameter query parameter 'status' must be given only once; unknown query parameter 'x'; known are limit, status, cursor | D17
GET /v1/pets [Idempotency-Key: ] | 200 | D42
GET /v1/pets [Accept: text/html] | 200 [Content-Type: application/json]

## listPets: further pages
given 2 sold: GET /v1/pets?limit=1&status=sold [Host: evil.example] [X-Forwarded-Host: evil.example] | 200 [Link: <$base/pets?limit=1&status=sold&cursor=*>; rel="next"] | S1
then GET $next | 200 [{*"status":"sold"}]
then GET /v1/pets?status=sold&cursor=$cursor&limit=100 | 200 [{*"status":"sold"}**]
given 2 sold: GET /v1/pets?limit=1&status=sold | 200
then GET /v1/pets?limit=1&cursor=$cursor‹ ¦ &status=pending› | 400 invalid_cursor cursor was made with other filters; send the same status as on the first page
given 2 sold: GET /v1/pets?limit=1&status=sold | 200
then GET /v1/pets?status=sold&cursor=‹A$cursor ¦ $cursor-› | 400 invalid_cursor cursor must be taken unchanged from the Link of a page of this list
GET /v1/pets?cursor=‹ ¦ x ¦ AAAA ¦ %25%25 ¦ (A×200)› | 400 invalid_cursor
given 21 sold: GET ‹http://evil.example/v1/pets?status=sold&limit=1 ¦ /v1/pets?status=sold› | 200 [Link: <$base/pets?‹limit=1&status=sold ¦ limit=20&status=sold›&cursor=*>; rel="next"]
given 3 sold: GET /v1/pets?limit=1&status=sold | 200
then GET /v1/pets?%63ursor=$cursor&%6cimit=1&status=%73old | 200 [Link: <$base/pets?%6cimit=1&status=%73old&cursor=*>; rel="next"]

## listPets: caching, HEAD
given 2 sold: GET /v1/pets?limit=1&status=sold | 200 [ETag: W/"*"]
then GET /v1/pets?limit=1&status=sold [If-None-Match: ‹W/$tag ¦ $tag ¦ "other", W/$tag ¦ *›] [Cache-Control: no-cache] | 304 [ETag: W/$tag] [Link: *; rel="next"] [Content-Type: -]
GET /v1/pets?limit=1 [If-None-Match: "other"] | 200
given 2 sold: GET /v1/pets?limit=1&status=sold | 200 [Content-Length: $length] [ETag: W/$tag]
then HEAD /v1/pets?limit=1&status=sold | 200 [Content-Type: application/json] [Content-Length: $length] [ETag: W/$tag] [Link: *; rel="next"]

## createPet
POST /v1/pets [Host: evil.example] {"status":"pending","name":"Rex","categoryId":-12345678901234} | 201 [Content-Type: application/json] [Location: $base/pets/$id] {"id":$id,"name":"Rex","categoryId":-12345678901234,"status":"pending"}
then GET /v1/pets/$id | 200 $body
POST /v1/pets {"name":"Rex","categoryId":7} | 201 {"id":*,"name":"Rex","categoryId":7,"status":"available"}
then GET /v1/pets/$id | 200 $body
POST /v1/pets {"id":-1,"__proto__":{"status":"sold"},"constructor":{"prototype":{"a":1}},"name":"Rex","categoryId":7} | 201 {"id":$id,"name":"Rex","categoryId":7,"status":"available"} | S3
then GET /v1/pets/-1 | 404 pet_not_found
POST /v1/pets {"categoryId":1,"name":"‹ Rex  ¦ (🐕×255) ¦ \ud83d\udc15 ¦ \"\\\/\b\f\n\r\t\u007f\u2028\ufeff ¦ \n.›"} | 201 {"id":*,"name":"‹ Rex  ¦ (🐕×255) ¦ 🐕 ¦ \"\\/\b\f\n\r\t* ¦ \n.›","categoryId":1,"status":"available"}
then GET /v1/pets/$id | 200 $body
POST /v1/pets {"categoryId":1,"name":‹"" ¦ " \t\u00a0" ¦ "(x×256)" ¦ "(🐕×256)" ¦ 7 ¦ null ¦ ["Rex"]›} | 400 validation_failed name must be a string of 1 to 255 characters, not blank, without NUL or unpaired surrogates
POST /v1/pets {"categoryId":1,"name":"‹a\u0000b ¦ \ud800 ¦ \udc15\ud83d›"} | 400 validation_failed
POST /v1/pets {"name":"Rex","categoryId":‹9223372036854775807 ¦ -9223372036854775808 ¦ 9007199254740993›} | 201 {"id":*,"name":"Rex","categoryId":‹9223372036854775807 ¦ -9223372036854775808 ¦ 9007199254740993›,"status":"available"} | D1
then GET /v1/pets/$id | 200 $body
POST /v1/pets {"name":"Rex","categoryId":‹1.0 ¦ 1e2 ¦ -0 ¦ 100e-2 ¦ 9.223372036854775807E18›} | 201 {"id":*,"name":"Rex","categoryId":‹1 ¦ 100 ¦ 0 ¦ 1 ¦ 9223372036854775807›,"status":"available"}
POST /v1/pets {"name":"Rex","categoryId":‹true ¦ null ¦ 1.5 ¦ 1e-1 ¦ 1e400 ¦ 1e1000000000 ¦ 9223372036854775808 ¦ -9223372036854775809 ¦ 9007199254740993.5›} | 400 validation_failed categoryId must be an integer between -9223372036854775808 and 9223372036854775807 | D1
POST /v1/pets {"name":"Rex","categoryId":7,"status":‹null ¦ "Available" ¦ "" ¦ " sold" ¦ 1 ¦ ["sold"]›} | 400 validation_failed status must be one of available, pending, sold
POST /v1/pets {‹"categoryId":7 ¦ "name":"Rex" ¦ › } | 400 validation_failed ‹name is required ¦ categoryId is required ¦ name is required; categoryId is required› | Errors
POST /v1/pets {"status":"lost","categoryId":"7"} | 400 validation_failed name is required; categoryId must be an integer between -9223372036854775808 and 9223372036854775807, sent as a JSON number, not a string; status must be one of available, pending, sold
POST /v1/pets?‹dry_run=true ¦ =x ¦ __proto__ ¦ %64ry_run=1&dry_run=2 ¦ name=Rex› {"name":"Rex","categoryId":7} | 400 invalid_parameter unknown query parameter '‹dry_run ¦  ¦ __proto__ ¦ dry_run ¦ name›'; this operation has none [Location: -] | D17
POST /v1/pets‹? ¦ ?& ¦ ?&&›  {"name":"Rex","categoryId":7} | 201 | D17
POST /v1/pets?a&b {"status":"lost"} | 400 invalid_parameter unknown query parameter 'a'; this operation has none; unknown query parameter 'b'; this operation has none | D17
POST /v1/pets?dry_run=true ‹[Authorization: -] {} ¦ [Authorization: Bearer $reader] {} ¦ [Content-Type: text/plain] {} ¦ (x×100000) ¦ {› | ‹401 missing_api_key ¦ 403 insufficient_scope ¦ 415 unsupported_media_type ¦ 413 body_too_large ¦ 400 malformed_json› | D41
POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex","categoryId":7} | 201
then POST /v1/pets?dry_run=true [Idempotency-Key: $unique] {"name":"Rex","categoryId":7} | 400 invalid_parameter [Idempotent-Replayed: -]
then POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex","categoryId":7} | 201 [Idempotent-Replayed: true] $body
POST /v1/pets?dry_run=true [Idempotency-Key: $unique] {"name":"Rex","categoryId":7} | 400 invalid_parameter
then POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex","categoryId":7} | 201 [Idempotent-Replayed: -]
POST /v1/pets ‹[] ¦ "Rex" ¦ 7 ¦ null ¦ true ¦ [{"name":"Rex","categoryId":7}]› | 400 validation_failed the body must be a JSON object
POST /v1/pets ‹[X-A: b] ¦ [Content-Type: application/json] [Content-Length: 0] ¦ [Content-Type: application/json] [Transfer-Encoding: chunked]› | 400 missing_body
POST /v1/pets {"name":"Rex",‹"name" ¦ "n\u0061me"›:"Max","categoryId":7} | 400 malformed_json
POST /v1/pets ‹{"name": ¦ {"name":"Rex","categoryId":7} x ¦ \xef\xbb\xbf{"name":"Rex","categoryId":7} ¦ {"name":"\xff","categoryId":7} ¦ ([×30)› | 400 malformed_json
POST /v1/pets {"name":"Rex","categoryId":7,"x":‹[(1,×11000)1] ¦ {("a":{},×4000)"b":1} ¦ ([×30000) ¦ ({"a":×33)›} | 400 body_too_complex | D130
POST /v1/pets {"name":"Rex","categoryId":7,"x":‹[(1,×8000)1] ¦ 1e400 ¦ {"__proto__":{"name":1}} ¦ "\u0000\ud83d"›} | 201 {"id":$id,"name":"Rex","categoryId":7,"status":"available"}
POST /v1/pets {"name":"Rex","categoryId":‹6.0000000000000000001 ¦ 1e-400 ¦ 9007199254740990.99999›} | 400 validation_failed
POST /v1/pets [Content-Type: ‹text/plain ¦ application/json; charset=latin1 ¦ application/json; charset=utf-8; charset=utf-16 ¦ application/json; version ¦ application/json; a="b ¦ application/json-seq ¦ - ¦ ›] {"name":"Rex","categoryId":7} | 415 unsupported_media_type [Accept: application/json] [Accept-Encoding: -]
POST /v1/pets [Content-Encoding: gzip] {"name":"Rex","categoryId":7} | 415 unsupported_media_type [Accept-Encoding: identity] [Accept: application/json]
POST /v1/pets [Content-Type: ‹application/json; charset=utf-8 ¦ Application/JSON ¦ application/json;charset="UTF-8" ¦ application/json; version=1 ¦ application/json;odata=minimal ; CHARSET=utf8; ¦ application/json; profile="a; charset=latin1"›] {"name":"Rex","categoryId":7} | 201
POST /v1/pets ‹[X-A: b] ¦ [Transfer-Encoding: chunked]› {"name":"Rex","categoryId":7}( ×65507) | 201
POST /v1/pets ‹[X-A: b] ¦ [Transfer-Encoding: chunked]› {"name":"Rex","categoryId":7}( ×65508) | 413 body_too_large

## createPet: safe retries
POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex \"II\", {the} \\ 🐕","categoryId":9223372036854775807} | 201 [Idempotent-Replayed: -] [Location: $base/pets/$id] {"id":$id,**} | D42
then POST /v1/pets [Idempotency-Key: ‹$unique ¦ "$unique"›] {"name":"Rex \"II\", {the} \\ 🐕","categoryId":9223372036854775807} | 201 [Idempotent-Replayed: true] [Location: $base/pets/$id] $body
then POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex \"II\", {the} \\ 🐕","categoryId":9223372036854775807} | 201 [Idempotent-Replayed: true] [Location: $base/pets/$id] $body
then GET /v1/pets/$id | 200 $body
POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex","categoryId":100,"status":"available"} | 201 | D45
then POST /v1/pets [Idempotency-Key: $unique] ‹{"categoryId":1e2,"name":"\u0052ex"} ¦ { "status" : "available" , "categoryId" : 100.0 , "name" : "Rex", "id": 7 } › | 201 [Idempotent-Replayed: true] $body
POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex","categoryId":9223372036854775807} | 201 | D45
then POST /v1/pets [Idempotency-Key: $unique] ‹{"name":"rex","categoryId":9223372036854775807} ¦ {"name":"Rex","categoryId":9223372036854775806} ¦ {"name":"Rex","categoryId":9223372036854775807,"status":"sold"}› | 422 idempotency_key_reused [Idempotent-Replayed: -] [Location: -]
then POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex","categoryId":9223372036854775807} | 201 [Idempotent-Replayed: true] $body
POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex","categoryId":7} | 201
then POST /v1/pets [Idempotency-Key: $unique] [Authorization: Bearer $second] {"name":"Rex","categoryId":7} | 201 [Idempotent-Replayed: true] $body
then POST /v1/pets [Idempotency-Key: $unique] [Authorization: Bearer $other] {"name":"Tom","categoryId":7} | 201 [Idempotent-Replayed: -]
then POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex","categoryId":7} | 201 [Idempotent-Replayed: true] $body
POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex"} | 400 validation_failed
then POST /v1/pets [Idempotency-Key: $unique] {"name":"Rex","categoryId":7} | 201 [Idempotent-Replayed: -]
POST /v1/pets [Idempotency-Key: ‹(x×255) ¦ "(x×255)" ¦ "(\\×255)" ¦ "a \"b\" \\ c" ¦ a"b\ ¦ " " ¦ a, b ¦ ~ ¦ 8e03978e-40d5-43dd-bc93-6894a57f9324›] {"name":"Rex","categoryId":7} | 201
POST /v1/pets [Idempotency-Key: ‹ ¦ "" ¦ " ¦ "abc ¦ "a"b" ¦ "abc";x=1 ¦ "abc", "def" ¦ "a\bc" ¦ "abc\" ¦ (x×256) ¦ "(x×256)" ¦ "(\\×256)" ¦ a\x09b ¦ "a\x09b" ¦ é ¦ \xe9›] {"name":"Rex","categoryId":7} | 400 invalid_idempotency_key
POST /v1/pets [Idempotency-Key: abc] [Idempotency-Key: ‹abc ¦ def›] {"name":"Rex","categoryId":7} | 400 invalid_idempotency_key
POST /v1/pets [Idempotency-Key: ] ‹[Authorization: -] ¦ [X-A: b] ¦ [Content-Type: text/plain] ¦ [X-A: b] ¦ [X-A: b] ¦ [X-A: b]› ‹{} ¦ (x×100000) ¦ {} ¦ { ¦  ¦ {}› | ‹401 missing_api_key ¦ 413 body_too_large ¦ 415 unsupported_media_type ¦ 400 malformed_json ¦ 400 missing_body ¦ 400 invalid_idempotency_key› | D41

## getPet
GET /v1/pets/$id?any=query&limit=0 | 200 [Content-Type: application/json] {"id":$id,"name":"Rex","categoryId":7,"status":"available"} | D17
GET /v1/pets/‹$id ¦ $id ¦ 0› [If-None-Match: ‹"other" ¦ * ¦ *›] | ‹200 ¦ 304 ¦ 404› [Deprecation: @1795132800] [Sunset: Thu, 05 Dec 2030 00:00:00 GMT] [Link: <$base/pets>; rel="successor-version", <$origin/docs/deprecations#getPet>; rel="deprecation"; type="text/html"] | Versioning
GET /v1/pets/‹0 ¦ -1 ¦ 9223372036854775807 ¦ -9223372036854775808› | 404 pet_not_found | Errors
GET /v1/pets/‹abc ¦ 1.5 ¦ 007 ¦ +1 ¦ -0 ¦ 9223372036854775808 ¦ -9223372036854775809 ¦ (1×4000) ¦ %20 ¦ 1%00› | 404 pet_not_found | D19
GET /v1/pets/0 [Idempotency-Key: ] | 404 pet_not_found | D42
## getPet: after its sunset (CLOCK=2030-12-05T00:00:00Z)
GET /v1/pets/‹$id ¦ no-such› | 410 operation_removed This operation was removed on 2030-12-05. Use GET /pets with a status filter instead. It cannot fetch one pet by its id: store the pet that createPet returns, or look for the id in the pages of GET /pets, which ascend by id. [Deprecation: @1795132800] [Sunset: Thu, 05 Dec 2030 00:00:00 GMT] [Link: *; rel="successor-version", *] | Versioning D67
GET /v1/pets/1 [Authorization: -] | 401 missing_api_key | D41
`,
);
