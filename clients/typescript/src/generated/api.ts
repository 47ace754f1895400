// Generated from openapi.json by `npm run generate`. Do not edit.

export interface paths {
    "/pets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List pets
         * @description One page of the catalogue, by ascending id.
         *
         *     Needs the scope `pets:read`.
         */
        get: operations["listPets"];
        put?: never;
        /**
         * Add a pet
         * @description Adds a pet to the catalogue and assigns its id.
         *
         *     Needs the scope `pets:write`.
         */
        post: operations["createPet"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pets/{petId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a pet
         * @deprecated
         * @description One pet by its identifier.
         *
         *     Needs the scope `pets:read`.
         *
         *     **Deprecated** since 2026-11-20, to be removed on 2030-12-05. Use GET /pets with a status filter instead: follow its pages, which ascend by id, until the id that you look for. A client that created the pet can also keep what createPet returned.
         */
        get: operations["getPet"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description Availability of a pet.
         * @example available
         * @enum {string}
         */
        PetStatus: "available" | "pending" | "sold";
        /** @description A pet of the catalogue. */
        Pet: {
            /**
             * Format: int64
             * @description Unique identifier, assigned by the service on creation. Ascending, not gapless.
             * @example 1
             */
            id: bigint;
            /**
             * @description The pet's name, kept exactly as it was sent. At least one character is not white space, of which the pattern has a list, and none is U+0000.
             * @example Rex
             */
            name: string;
            /**
             * Format: int64
             * @description Identifier of the category the pet belongs to.
             * @example 7
             */
            categoryId: bigint;
            /**
             * @description Availability of the pet.
             * @example available
             */
            status: components["schemas"]["PetStatus"];
        };
        /** @description A page of pets, by ascending id. */
        Pets: components["schemas"]["Pet"][];
        /** @description A pet to add. Members that are not listed here are ignored. */
        NewPet: {
            /**
             * @description The pet's name, kept exactly as it was sent. At least one character is not white space, of which the pattern has a list, and none is U+0000.
             * @example Rex
             */
            name: string;
            /**
             * Format: int64
             * @description Identifier of the category the pet belongs to.
             * @example 7
             */
            categoryId: bigint;
            /**
             * @description Availability of the pet; `available` when it is not sent.
             * @example available
             */
            status?: components["schemas"]["PetStatus"];
        };
        /** @description The body of every response that is an error. */
        Error: {
            /**
             * @description Machine-readable error code. The codes of an operation are named with its responses; a code that was published keeps its meaning, and new ones may be added, so treat an unknown code by its `status`.
             * @example validation_failed
             */
            code: string;
            /**
             * @description Human-readable description. Meant for people, and may change: do not parse it.
             * @example name is required
             */
            message: string;
            /**
             * Format: int32
             * @description The HTTP status code of the response.
             * @example 400
             */
            status: number;
        };
    };
    responses: {
        /**
         * @description Unauthorized.
         *     - `missing_api_key`: No usable API key was sent in the Authorization header.
         *     - `invalid_api_key`: The API key is not known.
         *     - `expired_api_key`: The API key has expired.
         *     - `revoked_api_key`: The API key was revoked.
         */
        Unauthorized: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `insufficient_scope`: The API key lacks a scope that the operation needs. */
        Forbidden: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `body_too_large`: The body is larger than the limit. */
        BodyTooLarge: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `unsupported_media_type`: The operation does not take the media type, the charset or the content coding of the body; Accept or Accept-Encoding names what it takes. */
        UnsupportedMediaType: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Accept: components["headers"]["Accept"];
                "Accept-Encoding": components["headers"]["Accept-Encoding"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `rate_limited`: The client has called more often than its rate limit allows; Retry-After says when to try again. */
        TooManyRequests: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                "Retry-After": components["headers"]["Retry-After"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description Internal Server Error.
         *     - `internal_error`: The service failed; the request id finds the cause.
         *     - `took_too_long`: A statement of the request needs more time than the database gives it. The same request would take too long again.
         */
        InternalError: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `unavailable`: The service cannot respond at the moment; Retry-After says when to try again. */
        Unavailable: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                "Retry-After": components["headers"]["Retry-After"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description Any other error, named by `code`.
         *     - `bad_request`: The request is not valid HTTP, or not what is expected here.
         *     - `client_error`: The request cannot be carried out, for the reason that the status names: any 4xx without a code of its own.
         *     - `unauthorized`: The credentials are not accepted here.
         *     - `forbidden`: The client may not do this.
         *     - `not_found`: The resource does not exist.
         *     - `route_not_found`: No resource has this path.
         *     - `method_not_allowed`: The resource does not support the method; Allow lists those it does.
         *     - `not_acceptable`: No representation matches the request.
         *     - `request_timeout`: The request did not arrive in time.
         *     - `conflict`: The request conflicts with the state of the resource.
         *     - `gone`: The resource no longer exists.
         *     - `precondition_failed`: A condition of the request is not met.
         *     - `uri_too_long`: The request target is longer than the limit.
         *     - `expectation_failed`: Expect names something unknown.
         *     - `unprocessable_content`: The body is valid, but cannot be carried out.
         *     - `headers_too_large`: The header fields are larger than the limit.
         *     - `server_error`: The service cannot carry out the request, for the reason that the status names: any 5xx without a code of its own.
         *     - `not_implemented`: The service does not support this.
         *     - `bad_gateway`: Another service that this request needs has failed.
         *     - `gateway_timeout`: Another service that this request needs did not respond in time.
         */
        OtherError: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Allow: components["headers"]["Allow"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /**
         * @description Identifies the request in the service's log: the one the client sent, if it was well-formed, or a new one.
         * @example sGn7x2Lq0aTzV9bM
         */
        "X-Request-Id": string;
        /**
         * @description `private, no-cache` with what may be stored and revalidated, `no-store` with everything else.
         * @example private, no-cache
         */
        "Cache-Control": string;
        /**
         * @description Weak entity tag of the body; send it as `If-None-Match` to get 304 while nothing has changed (RFC 9110).
         * @example W/"p2mYq0cT8mW3Zt7cU5Hn6y1b2aE"
         */
        ETag: string;
        /**
         * @description The request header fields that the response depends on (RFC 9110).
         * @example Authorization
         */
        Vary: string;
        /**
         * @description The challenge: what is wrong with the API key, or which scope it lacks (RFC 6750).
         * @example Bearer realm="petstore"
         */
        "WWW-Authenticate": string;
        /**
         * @description The media type that a request body must have (RFC 9110).
         * @example application/json
         */
        Accept: string;
        /**
         * @description The content coding that a request body must have, if it had another one (RFC 9110).
         * @example identity
         */
        "Accept-Encoding": string;
        /**
         * @description With 405: the methods that the resource supports (RFC 9110).
         * @example GET, HEAD, OPTIONS, POST
         */
        Allow: string;
        /**
         * @description Seconds to wait before the next attempt (RFC 9110).
         * @example 1
         */
        "Retry-After": number;
        /**
         * @description Since when the operation is deprecated: `@` and a Unix time in seconds (RFC 9745).
         * @example @1795132800
         */
        Deprecation: string;
        /**
         * @description From when on the operation may be gone: an HTTP date (RFC 8594).
         * @example Thu, 05 Dec 2030 00:00:00 GMT
         */
        Sunset: string;
        /**
         * @description The operation to use instead (`successor-version`) and the page about the deprecation (RFC 8288, RFC 9745).
         * @example <https://petstore.example/v1/pets>; rel="successor-version", <https://petstore.example/docs/deprecations#getPet>; rel="deprecation"; type="text/html"
         */
        Link: string;
        /**
         * @description The address of what was created (RFC 9110).
         * @example https://petstore.example/v1/pets/1
         */
        Location: string;
        /**
         * @description This is the first response again: the request was already carried out with the same `Idempotency-Key`.
         * @example true
         */
        "Idempotent-Replayed": "true";
        /**
         * @description The next page, as `rel="next"` (RFC 8288). Absent on the last page.
         * @example <https://petstore.example/v1/pets?limit=100&cursor=AgAAAAAAAAAAAAAAFHXyJ7Q>; rel="next"
         */
        NextPage: string;
        /**
         * @description The quota of the client, for all of its keys together: `q` requests in `w` seconds. They may be sent at once, and come back evenly (draft-ietf-httpapi-ratelimit-headers-10). Absent without a limit.
         * @example "client";q=6000;w=60
         */
        "RateLimit-Policy": string;
        /**
         * @description `r` requests are left; after `t` idle seconds the whole quota is back.
         * @example "client";r=5999;t=1
         */
        RateLimit: string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listPets: {
        parameters: {
            query?: {
                /** @description Maximum number of pets returned. */
                limit?: number;
                /** @description Return only pets with this availability. */
                status?: components["schemas"]["PetStatus"];
                /** @description Start of the page: copy it from the previous page's `Link` and keep the same `status`. Leave it out for the first page. */
                cursor?: string;
            };
            header?: {
                /** @description The `ETag` of an earlier response, or several: the response is 304 without a body while nothing has changed (RFC 9110). */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page of pets. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    Vary: components["headers"]["Vary"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    Link: components["headers"]["NextPage"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pets"];
                };
            };
            /** @description Not modified: `If-None-Match` names the current `ETag`. There is no body. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    Vary: components["headers"]["Vary"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    Link: components["headers"]["NextPage"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            /**
             * @description Bad Request.
             *     - `invalid_parameter`: A query parameter is invalid, unknown or given twice; the message names it.
             *     - `invalid_cursor`: The cursor was not issued by this service, or for another filter; start again from the first page.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["OtherError"];
        };
    };
    createPet: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request safe to repeat: choose a unique text, such as a UUID, and send it with every attempt. 1 to 255 characters of printable ASCII, quoted (a string of RFC 9651) or bare. The key is kept for 24 hours, for the client of the API key. Repeats get the first response again, marked `Idempotent-Replayed: true`; a different request with the same key gets 422. A refused request does not use up its key (draft-ietf-httpapi-idempotency-key-header). */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        /** @description The pet to add. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPet"];
            };
        };
        responses: {
            /** @description The created pet. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pet"];
                };
            };
            /**
             * @description Bad Request.
             *     - `malformed_json`: The body is not UTF-8, not JSON (RFC 8259), or names a member twice.
             *     - `body_too_complex`: The body nests too deeply, or has too many values and member names; the message names the limit.
             *     - `missing_body`: The operation needs a body and none was sent.
             *     - `validation_failed`: The body lacks a required member or a value is invalid; the message lists every fault.
             *     - `invalid_idempotency_key`: The Idempotency-Key is empty, longer than 255 characters, not printable ASCII, wrongly quoted or given twice.
             *     - `invalid_parameter`: A query parameter is invalid, unknown or given twice; the message names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["BodyTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            /** @description `idempotency_key_reused`: This Idempotency-Key was already used for a different request; a new request needs a new key. */
            422: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["OtherError"];
        };
    };
    getPet: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of an earlier response, or several: the response is 304 without a body while nothing has changed (RFC 9110). */
                "If-None-Match"?: string;
            };
            path: {
                /**
                 * @description Identifier of the pet.
                 * @example 1
                 */
                petId: bigint;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The pet. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    Vary: components["headers"]["Vary"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pet"];
                };
            };
            /** @description Not modified: `If-None-Match` names the current `ETag`. There is no body. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    Vary: components["headers"]["Vary"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description `pet_not_found`: No pet has this identifier. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description `operation_removed`: The deprecated operation has been removed; Link names its successor. */
            410: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
            default: components["responses"]["OtherError"];
        };
    };
}
