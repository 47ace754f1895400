/** HTML, which the tag `html` does not escape. */
export class Html {
  constructor(readonly text: string) {}
}

/** A template tag that makes HTML. It escapes strings, for use in element content and quoted attributes. */
export function html(parts: TemplateStringsArray, ...values: (string | number | Html | readonly Html[])[]): Html {
  return new Html(parts.map((part, index) => part + toText(values[index] ?? '')).join(''));
}

function toText(value: string | number | Html | readonly Html[]): string {
  if (value instanceof Html) {
    return value.text;
  }
  if (typeof value === 'object') {
    return value.map(({ text }) => text).join('');
  }
  return escapeHtml(String(value));
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
