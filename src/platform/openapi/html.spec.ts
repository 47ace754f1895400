import { html } from './html.js';

describe('html', () => {
  test('escapes what could end a text or a quoted attribute', () => {
    expect(html`<p title="${`"><script>'&`}">${'<b>'}</p>`.text).toBe(
      '<p title="&#34;&#62;&#60;script&#62;&#39;&#38;">&#60;b&#62;</p>',
    );
  });

  test('keeps what is HTML already, one or many', () => {
    expect(html`<ul>${[1, 2].map((number) => html`<li>${number}</li>`)}${html`<li>&amp;</li>`}</ul>`.text).toBe(
      '<ul><li>1</li><li>2</li><li>&amp;</li></ul>',
    );
  });
});
