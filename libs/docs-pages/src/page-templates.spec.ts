import { html } from './page-templates.js';

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
