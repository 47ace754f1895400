import { html, swaggerUiPage } from './page-templates.js';

describe('html', () => {
  test('escapes characters that could end a text or a quoted attribute', () => {
    expect(html`<p title="${`"><script>'&`}">${'<b>'}</p>`.text).toBe(
      '<p title="&#34;&#62;&#60;script&#62;&#39;&#38;">&#60;b&#62;</p>',
    );
  });

  test('keeps values that are HTML already, single or in an array', () => {
    const items = ['<', '>'].map((sign) => html`<i>${sign}</i>`);
    expect(html`<p>${items}${html`<b>&amp;</b>`}</p>`.text).toBe('<p><i>&#60;</i><i>&#62;</i><b>&amp;</b></p>');
  });
});

test.each([
  [true, ['openapi.json', 'docs/client.tgz']],
  [false, ['openapi.json']],
])('the reference offers the document, then the client if there is one: %s', (hasClient, expected) => {
  const page = swaggerUiPage('Toys', hasClient);
  const downloads = /<p class="downloads">.*?<\/p>/s.exec(page)?.[0] ?? '';
  expect([...downloads.matchAll(/href="([^"]+)"/g)].map(([, address]) => address)).toEqual(expected);
});
