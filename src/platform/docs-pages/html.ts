/** Text that is HTML already. */
export class Html {
  constructor(readonly text: string) {}
}

/** HTML with values put into element content or quoted attributes; a string is escaped, and stays what it is. */
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
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
