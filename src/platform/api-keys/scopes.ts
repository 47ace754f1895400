/** Whether a text has the form of a scope: `thing:action` in lower-case letters, such as `orders:read`. */
export function isScope(text: string): boolean {
  return /^[a-z][a-z0-9-]{0,62}:[a-z][a-z0-9-]{0,62}$/.test(text);
}
