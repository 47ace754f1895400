// What was sent and answered, exactly as it was.
/* global navigator, setTimeout */
import { indentJson } from './exact-json.js';

/** The request as a curl command. The API key is the shell's variable, so that the text can be shown to others. */
export function curlOf({ url, method, headers = {}, body }) {
  const quote = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const lines = [`curl -i -X ${method.toUpperCase()} ${quote(url)}`];
  for (const [name, value] of Object.entries(headers)) {
    const isKey = name.toLowerCase() === 'authorization';
    lines.push(`-H ${isKey ? '"Authorization: Bearer $API_KEY"' : quote(`${name}: ${value}`)}`);
  }
  if (typeof body === 'string') lines.push(`--data-raw ${quote(body)}`);
  return lines.join(' \\\n  ');
}

/** Makes the component that shows an answer, and the one that shows a text to copy. */
export function answerComponents({ React }) {
  const h = React.createElement;

  /** Text in a box that scrolls, with a button beside its title, so that the button covers nothing. */
  function Code({ title, text }) {
    const [isCopied, setCopied] = React.useState(false);
    const copy = async () => {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    };
    return h(
      'div',
      { className: 'code' },
      h(
        'div',
        { className: 'code-title' },
        h('span', null, title),
        h('button', { type: 'button', onClick: copy, 'aria-label': `Copy: ${title}` }, isCopied ? 'Copied' : 'Copy'),
      ),
      h('pre', { tabIndex: 0, role: 'group', 'aria-label': title }, h('code', null, text)),
    );
  }

  function Answer({ response, request }) {
    if (response.error && response.status === undefined) {
      return h('p', { className: 'failure' }, 'There was no answer: the request did not reach the service.');
    }
    const fields = response.fields ?? [];
    const body = typeof response.text === 'string' ? response.text : '';
    return h(
      React.Fragment,
      null,
      h(
        'p',
        { className: response.status < 400 ? 'status success' : 'status failure' },
        h('strong', null, `${response.status} ${response.statusText ?? ''}`.trim()),
        ` in ${response.duration} ms`,
      ),
      body === '' ? null : h(Code, { title: 'Body', text: indentJson(body) }),
      h(Code, { title: 'Header fields', text: fields.map(([name, value]) => `${name}: ${value}`).join('\n') }),
      request && h(Code, { title: 'The request, with curl', text: curlOf(request) }),
    );
  }

  return { Answer, Code };
}
