// Starts Swagger UI on /docs. Its own layout is kept; the plugin below changes only what would lose data or accessibility.
/* global addEventListener, Blob, CSS, document, fetch, history, location, matchMedia, MutationObserver, URL */

const { SwaggerUIBundle } = /** @type {any} */ (globalThis);

/** Resolves the path of a server, such as `/v1`, at the address in the browser, which may have a path before it. */
const serverAt = (path) => new URL(`.${path}`, location.href).href.replace(/\/$/, '');

/** Where the page sends its requests: the server that shows it, under the address in the browser. */
function thisServer({ servers }) {
  return serverAt(servers[0].url.endsWith('/v1') ? '/v1' : '/');
}

/** Indents JSON without rounding its numbers. Browsers without `JSON.rawJSON` show the text as it was sent. */
function indentJson(text) {
  const { rawJSON } = /** @type {any} */ (JSON);
  try {
    const exact = (_name, value, { source }) => (typeof value === 'number' ? rawJSON(source) : value);
    return JSON.stringify(JSON.parse(text, exact), null, 2);
  } catch {
    return text;
  }
}

/** Sends a request, and keeps the header fields of its response as they were sent: Swagger UI would split them at commas. */
function sendRequest(request) {
  const { responseInterceptor, headers: sent } = request;
  // Some readers enter the whole field instead of the key.
  if (sent.Authorization) sent.Authorization = sent.Authorization.replace(/^Bearer\s+Bearer\s/i, 'Bearer ').trim();
  let headers = {};
  request.userFetch = async (url, options) => {
    try {
      const response = await fetch(url, options);
      headers = Object.fromEntries(response.headers);
      return response;
    } catch {
      const message = 'The request may have been carried out: repeat it with the same Idempotency-Key.';
      throw Object.assign(new Error(message), { name: 'No complete response arrived' });
    }
  };
  request.responseInterceptor = async (response) => {
    const result = (await responseInterceptor?.(response)) ?? response;
    return Object.assign(result, { headers });
  };
  return request;
}

/** Which operations and tags were opened (true) or closed, by their keys in Swagger UI as JSON. Entries of the history have it. */
let shown = {};
/** Whether the address stays as it is while operations are opened or closed. */
let keepsAddress = false;

/** Makes an entry of the browser's history when a reader opens or closes an operation or tag: `#/Toys/listToys`. */
const followedByAddress = (show) => (thing, isShown) => {
  show(thing, isShown);
  const [kind, ...path] = [thing].flat();
  const isOther = !['operations', 'operations-tag'].includes(kind) || path.length > 2;
  if (keepsAddress || isOther) return;
  shown = { ...shown, [JSON.stringify(thing)]: isShown };
  history.pushState({ shown }, '', isShown ? `#/${path.map(encodeURIComponent).join('/')}` : '#/');
};

/** The parts of an address such as `#/Toys/listToys`: the tag and the operation. */
function namedByAddress() {
  try {
    return location.hash.split('/').slice(1).map(decodeURIComponent);
  } catch {
    return [];
  }
}

/** Opens and closes what was open at this entry of the history; at a new one, what its address names. */
function showEntry({ layoutActions }) {
  const [tag, operationId] = namedByAddress();
  const named = operationId ? { [JSON.stringify(['operations', tag, operationId])]: true } : {};
  const next = history.state?.shown ?? named;
  keepsAddress = true;
  for (const key of Object.keys({ ...shown, ...next })) {
    const thing = JSON.parse(key);
    // At first, tags are open and operations closed.
    layoutActions.show(thing, next[key] ?? thing.length === 2);
  }
  keepsAddress = false;
  shown = next;
}

const referencePlugin = ({ React }) => {
  const h = React.createElement;

  /** The body of a live response: JSON keeps every digit. */
  const responseBody = (Original) => (props) =>
    /json/i.test(props.contentType)
      ? h(
          props.getComponent('HighlightCode', true),
          { language: 'json', downloadable: true, fileName: 'response.json', canCopy: true },
          indentJson(props.content),
        )
      : h(Original, props);

  /** A described response: one line that opens, except the successful ones. */
  const response = (Original) => (props) => {
    const [isOpen, setOpen] = React.useState(props.code.startsWith('2'));
    if (isOpen) return h(Original, props);
    const description = props.response.get('description')?.replaceAll('`', '');
    return h(
      'tr',
      { className: 'response' },
      h('td', { className: 'response-col_status' }, props.code),
      h(
        'td',
        { className: 'response-col_description', colSpan: 2 },
        h('button', { type: 'button', className: 'response-open', onClick: () => setOpen(true) }, description),
      ),
    );
  };

  /** Plain text instead of a link, because the link would be inside a button. */
  const DeepLink = () => (props) => h('span', null, props.children ?? props.text);

  /** Names what an array has, which Swagger UI calls `any` where the schema is a reference. */
  const JSONSchema202012KeywordType = (Original) => (props) => {
    const name = props.schema?.items?.$ref?.split('/').at(-1);
    const className = 'json-schema-2020-12__attribute json-schema-2020-12__attribute--primary';
    return name === undefined ? h(Original, props) : h('strong', { className }, `array<${name}>`);
  };

  return {
    wrapComponents: { responseBody, response, DeepLink, JSONSchema202012KeywordType },
    statePlugins: {
      layout: { wrapActions: { show: followedByAddress } },
      spec: {
        wrapActions: {
          updateJsonSpec: (update) => (api) => update({ ...api, servers: [{ url: thisServer(api) }] }),
        },
      },
    },
  };
};

/** Id of the element that the address names, as Swagger UI makes ids. */
function idInAddress() {
  const path = namedByAddress();
  if (path.length === 0) return location.hash.slice(1);
  return CSS.escape([path.length === 1 ? 'operations-tag' : 'operations', ...path].join('-').replaceAll(/\s/g, '_'));
}

/** Id of the element to scroll to, until Swagger UI has made it. */
let fragment = idInAddress();

/** Names controls that Swagger UI leaves without a good name, and lets the keyboard scroll code. */
function completeElements() {
  const target = document.getElementById(fragment);
  if (target) fragment = '';
  target?.scrollIntoView();
  const name = (selector, nameOf) => {
    for (const element of document.querySelectorAll(selector)) element.ariaLabel = nameOf(element);
  };
  name('#servers', () => 'Server');
  name('.close-modal', () => 'Close');
  name('.body-param__text', () => 'Request body');
  name('.examples-select-element', () => 'Example');
  name('.auth-btn-wrapper button', ({ textContent }) => textContent);
  name('[data-param-name] :is(input, select)', (field) => field.closest('[data-param-name]').dataset.paramName);
  for (const element of document.querySelectorAll('#reference pre:not([tabindex])'))
    element.setAttribute('tabindex', '0');
}
new MutationObserver(completeElements).observe(document.body, { childList: true, subtree: true });

const dark = matchMedia('screen and (prefers-color-scheme: dark)');
const followTheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', followTheme);
followTheme();

/** Opens the operations that are closed, so that they are printed. A click, because React shows its effect at once. */
addEventListener('beforeprint', () => {
  const closed = document.querySelectorAll('.opblock-summary-control[aria-expanded=false]');
  keepsAddress = true;
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (closed)) button.click();
  keepsAddress = false;
});

/** Downloads the document with this server in it: programs do not know where a file comes from. */
async function download(event) {
  const link = event.currentTarget;
  // The click below, or one that saves the file as it is.
  if (link.href.startsWith('blob:')) return;
  event.preventDefault();
  const address = link.href;
  const response = await fetch(address).catch(() => undefined);
  if (!response?.ok) return location.assign(address);
  const text = await response.text();
  const named = text.replaceAll(/"url": "(\/[^"]*)"/g, (_, path) => `"url": "${serverAt(path)}"`);
  link.href = URL.createObjectURL(new Blob([named]));
  link.click();
  URL.revokeObjectURL(link.href);
  link.href = address;
}
document.querySelector('.downloads a')?.addEventListener('click', download);

/** The OpenAPI document. Throws a message for people. */
async function readDocument() {
  const response = await fetch('openapi.json').catch(() => {
    throw new Error('openapi.json did not arrive: the connection to the service failed.');
  });
  if (!response.ok) throw new Error(`openapi.json did not arrive: the response was ${response.status}.`);
  const read = await response.json().catch(() => undefined);
  if (!read?.openapi) throw new Error('What arrived is not openapi.json: a proxy or a login page may have sent it.');
  return read;
}

try {
  if (!SwaggerUIBundle)
    throw new Error('swagger-ui-bundle.js was blocked or did not arrive: allow the scripts of this server.');
  const ui = SwaggerUIBundle({
    spec: await readDocument(),
    dom_id: '#reference',
    displayRequestDuration: true,
    showCommonExtensions: true,
    validatorUrl: null,
    layout: 'BaseLayout',
    plugins: [referencePlugin],
    requestInterceptor: sendRequest,
    onComplete: () => showEntry(ui),
  });
  addEventListener('popstate', () => {
    showEntry(ui);
    if (history.state === null) fragment = idInAddress();
    completeElements();
  });
} catch (error) {
  document.getElementById('reference')?.remove();
  /** @type {HTMLElement} */ (document.getElementById('cause')).textContent = /** @type {Error} */ (error).message;
}
