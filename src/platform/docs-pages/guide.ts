import { Marked, type Token, type Tokens } from 'marked';
import { escapeHtml } from './html.js';

/** A guide as HTML, with the headings of its sections. */
export interface Guide {
  readonly html: string;
  readonly sections: readonly { readonly anchor: string; readonly title: string }[];
}

/** The origin that the samples of the Markdown call. */
const SAMPLE_ORIGIN = 'http://localhost:3000';

const LANGUAGES: Record<string, string> = { sh: 'curl', js: 'JavaScript', python: 'Python' };

/**
 * Converts a guide to HTML. Consecutive code blocks in different languages become tabs, which need no script. Addresses of
 * the sample server become those of this service. Links to files become text, because the service does not serve the files.
 *
 * @param markdown the guide; HTML in it is shown as text
 * @param baseUrl the base URL of the service, such as `https://api.example.com/v1`
 */
export function renderGuide(markdown: string, baseUrl: string): Guide {
  const marked = new Marked();
  const sections: { anchor: string; title: string }[] = [];
  marked.use({
    renderer: {
      html: ({ text }) => escapeHtml(text),
      heading({ tokens, depth, text }) {
        const anchor = anchorOf(text);
        if (depth === 2) sections.push({ anchor, title: text });
        return `<h${depth} id="${anchor}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      code: (code) => pre(code, baseUrl),
      link({ href, tokens }) {
        const address = addressOf(href);
        const text = this.parser.parseInline(tokens).replace(`${SAMPLE_ORIGIN}/`, '/');
        return address === undefined ? text : `<a href="${escapeHtml(address)}">${text}</a>`;
      },
    },
  });
  const html = withGroups(marked.lexer(markdown))
    .map((item, index) => (Array.isArray(item) ? tabs(item, index, baseUrl) : marked.parser([item])))
    .join('');
  return { html, sections };
}

/** Groups consecutive code blocks into one item; other tokens stay single. */
function withGroups(tokens: readonly Token[]): (Token | Tokens.Code[])[] {
  const items: (Token | Tokens.Code[])[] = [];
  for (const token of tokens) {
    const last = items.at(-1);
    if (token.type === 'code' && Array.isArray(last)) last.push(token as Tokens.Code);
    else if (token.type === 'code') items.push([token as Tokens.Code]);
    else if (token.type !== 'space') items.push(token);
  }
  return items;
}

/** Radio buttons and code blocks; the style sheet shows the block of the button that is checked. */
function tabs(codes: readonly Tokens.Code[], group: number, baseUrl: string): string {
  const blocks = codes.map((code) => pre(code, baseUrl));
  if (blocks.length === 1) return blocks.join('');
  const buttons = codes.map(({ lang = '' }, index) => {
    const id = `sample-${group}-${lang}`;
    const checked = index === 0 ? ' checked' : '';
    return (
      `<input type="radio" name="sample-${group}" id="${id}" value="${lang}"${checked}>` +
      `<label for="${id}">${LANGUAGES[lang] ?? lang}</label>`
    );
  });
  return `<fieldset class="samples"><legend>Language of the sample</legend>${buttons.join('')}${blocks.join('')}</fieldset>\n`;
}

function pre({ text, lang = '' }: Tokens.Code, baseUrl: string): string {
  const code = text.replaceAll(`${SAMPLE_ORIGIN}/v1`, baseUrl);
  return `<pre tabindex="0" role="group" aria-label="${LANGUAGES[lang] ?? lang}"><code>${escapeHtml(code)}</code></pre>\n`;
}

/** The target of a link, relative to /docs/guide; undefined for files, which this service does not serve. */
function addressOf(href: string): string | undefined {
  if (href.startsWith('#')) return href;
  return href.startsWith(`${SAMPLE_ORIGIN}/`) ? `../${href.slice(SAMPLE_ORIGIN.length + 1)}` : undefined;
}

/** The id of a heading in a page, as GitHub makes it. */
export function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}
