const POSTGRESQL_PROTOCOLS = ['postgresql:', 'postgres:'];

/** Whether a text is the URI of one PostgreSQL server. A parameter may name the host, such as the directory of a socket. */
export function isDatabaseUri(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && POSTGRESQL_PROTOCOLS.includes(url.protocol) && (url.hostname !== '' || url.search !== '');
}

/** Whether a URI lists several hosts, as libpq allows: before the path, or in a parameter. */
export function namesSeveralHosts(text: string): boolean {
  const [, authority = ''] = /^[^/]*\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(text) ?? [];
  return authority.includes(',') || /[?&](host|port)=[^&]*,/.test(text) || /[?&]target_session_attrs=/.test(text);
}

/** The base URL in a text, without a trailing slash; undefined if it is no http or https URL that ends in /v1. */
export function parseBaseUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  // `href` is ASCII, as header fields require.
  return isPlain && /^https?:$/.test(url.protocol) && /\/v1\/?$/.test(url.pathname)
    ? url.href.replace(/\/$/, '')
    : undefined;
}

/** Whether a text is an origin as browsers send it (RFC 6454, section 6.2); any other would never match. */
export function isOrigin(text: string): boolean {
  return /^https?:\/\/[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

/** Whether a text is the URI of a Redis. */
export function isRedisUri(text: string): boolean {
  return URL.canParse(text) && /^rediss?:\/\/[^/]/.test(text);
}
