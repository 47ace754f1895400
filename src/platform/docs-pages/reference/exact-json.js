/**
 * Indents JSON text without parsing it, so that strings and numbers keep every character: `JSON.parse` would round 64-bit
 * integers. Text that is not JSON stays as it is.
 */
export function indentJson(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  let depth = 0;
  let result = '';
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    if (token === '{' || token === '[') {
      const isEmpty = next === '}' || next === ']';
      depth += 1;
      result += isEmpty ? token : `${token}\n${'  '.repeat(depth)}`;
    } else if (token === '}' || token === ']') {
      depth -= 1;
      const isEmpty = tokens[index - 1] === '{' || tokens[index - 1] === '[';
      result += isEmpty ? token : `\n${'  '.repeat(depth)}${token}`;
    } else if (token === ',') {
      result += `,\n${'  '.repeat(depth)}`;
    } else {
      result += token === ':' ? ': ' : token;
    }
  });
  return result;
}
