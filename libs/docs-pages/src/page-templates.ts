import type { DeprecatedOperation } from '#operations';

// All addresses in the pages are relative, so that the pages also work behind a proxy that adds a path prefix.

/** HTML, which the tag `html` does not escape. */
class Html {
  constructor(readonly text: string) {}
}

/** A template tag that makes HTML. It escapes strings, for use in element content and quoted attributes. */
export function html(parts: TemplateStringsArray, ...values: (string | Html | readonly Html[])[]): Html {
  return new Html(parts.map((part, index) => part + toText(values[index] ?? '')).join(''));
}

function toText(value: string | Html | readonly Html[]): string {
  if (typeof value === 'string') return escapeHtml(value);
  return value instanceof Html ? value.text : value.map(({ text }) => text).join('');
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const WITHOUT_SCRIPTS = html`<a href="openapi.json">openapi.json</a> is the document itself, and
  <a href="docs/guide">the guide</a> shows how to call the service.`;

const CLIENT = html`, <a href="docs/client.tgz" download>TypeScript client</a>`;

/**
 * The page with Swagger UI, at /docs. Its style sheet is behind "Loading …", which browsers therefore show before they have it.
 *
 * @param service the name of the service, for the title of the page
 * @param hasClient whether the service has a client to download
 */
export function swaggerUiPage(service: string, hasClient: boolean): string {
  return page(
    service,
    'docs',
    html`<main>
      <p class="downloads">
        Download: <a href="openapi.json" download="openapi.json">OpenAPI document</a>${hasClient ? CLIENT : ''}
      </p>
      <div id="reference"><p>Loading …</p></div>
      <div class="trouble" role="alert">
        <p id="cause">
          This takes long. The connection may be slow, or a script of this page was blocked: allow the scripts of this
          server.
        </p>
        <p>Reload the page. If that does not help, ask the operators of the service. ${WITHOUT_SCRIPTS}</p>
      </div>
      <link rel="stylesheet" href="docs/assets/swagger-ui.css" />
      <noscript><p>This page needs JavaScript. ${WITHOUT_SCRIPTS}</p></noscript>
    </main>`,
    html`<link rel="preload" href="openapi.json" as="fetch" crossorigin />
      <script src="docs/assets/swagger-ui-bundle.js" defer></script>
      <script src="docs/assets/reference.js" type="module"></script> `,
  );
}

/** A guide as HTML, with the headings of its sections. */
export interface Guide {
  readonly html: string;
  readonly sections: readonly { readonly anchor: string; readonly title: string }[];
}

/** The guide for clients, at /docs/guide, with links to its sections below its title. */
export function guidePage(service: string, guide: Guide): string {
  const links = guide.sections.map(({ anchor, title }) => html`<li><a href="#${anchor}">${title}</a></li>`);
  const contents = html`<nav aria-label="Sections of the guide">
    <ul class="codes">
      ${links}
    </ul>
  </nav>`;
  const text = new Html(guide.html.replace('</h1>', () => `</h1>${contents.text}`));
  const script = html`<script src="assets/guide.js" type="module"></script>`;
  return page(service, 'docs/guide', html`<main class="page">${text}</main>`, script);
}

/** The page of deprecated operations, at /docs/deprecations. The anchor of an operation is its operationId. */
export function deprecationsPage(service: string, deprecations: readonly DeprecatedOperation[], now: number): string {
  const sections = deprecations.map(
    ({ operationId, endpoint, summary, since, sunset, replacement, removedAt }) =>
      html`<section id="${operationId}">
        <h2><code>${endpoint}</code></h2>
        <p>${summary} (<code>${operationId}</code>)</p>
        <dl class="facts">
          <dt>Deprecated since</dt>
          <dd>${time(since)}</dd>
          <dt>${removedAt <= now ? 'Removed on' : 'To be removed on'}</dt>
          <dd>${time(sunset)}</dd>
          <dt>Replacement</dt>
          <dd>${replacement}</dd>
        </dl>
      </section>`,
  );
  const introduction = html`<p>
    These operations are going to be removed, or have been. Until then they work, and every response of theirs carries
    the header fields <code>Deprecation</code> (RFC 9745) and <code>Sunset</code> (RFC 8594), and a <code>Link</code> to
    what to use instead; after that they respond only with 410 <code>operation_removed</code>.
  </p>`;
  const content = sections.length > 0 ? html`${introduction}${sections}` : html`<p>No operation is deprecated.</p>`;
  const main = html`<main class="page">
    <h1>Deprecations</h1>
    ${content}
  </main>`;
  return page(service, 'docs/deprecations', main);
}

const ENTRIES = [
  ['docs', 'API'],
  ['docs/guide', 'Guide'],
  ['docs/deprecations', 'Deprecations'],
  ['openapi.json', 'openapi.json'],
  ['openapi.yaml', 'openapi.yaml'],
] as const;

function page(service: string, current: (typeof ENTRIES)[number][0], main: Html, head: Html = html``): string {
  // The other pages lie one level below /docs.
  const root = current === 'docs' ? '' : '../';
  const links = ENTRIES.map(([path, text]) =>
    path === current
      ? html`<a href="${root}${path}" aria-current="page">${text}</a>`
      : html`<a href="${root}${path}">${text}</a>`,
  );
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${ENTRIES.find(([path]) => path === current)?.[1] ?? ''} – ${service}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <link rel="icon" href="${root}docs/assets/icon.svg" />
        ${head}
        <link rel="stylesheet" href="${root}docs/assets/docs.css" />
      </head>
      <body>
        <nav aria-label="Documentation">${links}</nav>
        ${main}
      </body>
    </html> `.text;
}

function time(instant: Date): Html {
  const date = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' }).format(instant);
  return html`<time datetime="${instant.toISOString()}">${date}</time>`;
}
