import { Marked } from 'marked';
import { rootUrlOf } from '#settings';
import { escapeHtml, type Guide } from './page-templates.js';

/** The origin that the samples of the Markdown call. */
const SAMPLE_ORIGIN = 'http://localhost:3000';
const CLIENT_ADDRESS = `${SAMPLE_ORIGIN}/docs/client.tgz`;

const LANGUAGES: Record<string, string> = { sh: 'curl', js: 'JavaScript', python: 'Python' };

/**
 * Converts a guide to HTML. Consecutive code blocks become tabs, which need no script. Addresses of the sample server become
 * those of this service. HTML in the guide is shown as text.
 *
 * @param baseUrl the base URL of the service, such as `https://api.example.com/v1`
 * @param hasClient whether the service has a client to install; paragraphs that name its address are left out otherwise
 */
export function renderGuide(markdown: string, baseUrl: string, hasClient: boolean): Guide {
  const sections: { anchor: string; title: string }[] = [];
  const marked = new Marked({
    renderer: {
      html: ({ text }) => escapeHtml(text),
      heading({ tokens, depth, text }) {
        // As GitHub makes the ids of headings.
        const anchor = text
          .toLowerCase()
          .replaceAll(/[^\w -]/g, '')
          .replaceAll(' ', '-');
        if (depth === 2) sections.push({ anchor, title: text });
        return `<h${depth} id="${anchor}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      code({ text, lang = '' }) {
        const code = escapeHtml(text);
        return `<pre role="group" aria-label="${LANGUAGES[lang] ?? lang}"><code>${code}</code></pre>\n`;
      },
    },
  });
  const shown = markdown.split('\n\n').filter((paragraph) => hasClient || !paragraph.includes(CLIENT_ADDRESS));
  const text = shown
    .join('\n\n')
    // Links first: the base URL may be that of the samples. The page is one level below /docs.
    .replaceAll(`](${SAMPLE_ORIGIN}/`, '](../')
    .replaceAll(CLIENT_ADDRESS, `${rootUrlOf(baseUrl)}/docs/client.tgz`)
    .replaceAll(`${SAMPLE_ORIGIN}/v1`, baseUrl);
  const html = marked.parse(text, { async: false });
  return { html: html.replace(/(?:<pre [^>]*>[^<]*<code>[^<]*<\/code><\/pre>\n){2,}/g, tabs), sections };
}

/** Radio buttons in front of the code blocks; the style sheet shows the block behind the button that is checked. */
function tabs(blocks: string, group: number): string {
  let checked = ' checked';
  const samples = blocks.replaceAll(/<pre [^>]*aria-label="([^"]*)"/g, (pre, language) => {
    const radio = `<input type="radio" name="sample-${group}" id="sample-${group}-${language}"${checked}>`;
    checked = '';
    return `${radio}<label for="sample-${group}-${language}">${language}</label>${pre}`;
  });
  return `<fieldset class="samples"><legend>Language of the sample</legend>${samples}</fieldset>\n`;
}
