// The API key of the person who reads the page: where it is kept, and what the service says of it.
/* global fetch, localStorage, sessionStorage */
import { operationsOf } from './document.js';

const STORED = 'api-key';

/** The key that was kept, and whether it outlives the session. */
export function storedKey() {
  const lasting = localStorage.getItem(STORED);
  return { key: lasting ?? sessionStorage.getItem(STORED) ?? '', isLasting: lasting !== null };
}

/** Keeps the key until the browser's tab is closed, or beyond if asked; an empty key is forgotten. */
export function storeKey(key, isLasting) {
  localStorage.removeItem(STORED);
  sessionStorage.removeItem(STORED);
  if (key !== '') (isLasting ? localStorage : sessionStorage).setItem(STORED, key);
}

/**
 * Asks the service about a key by one request: a GET of the document that needs a key and no other parameter.
 *
 * @returns `isAccepted`, which is undefined when the service could not say, and a sentence for the reader
 */
export async function checkKey(document, server, key) {
  const probe = operationsOf(document).find(
    ({ path, method, operation }) =>
      method === 'get' &&
      !path.includes('{') &&
      !operation.parameters?.some(({ required }) => required) &&
      !operation.deprecated &&
      operation.security?.length !== 0,
  );
  if (!probe) return { isAccepted: undefined, says: 'The key is not checked; the first request will tell.' };
  try {
    const answer = await fetch(server + probe.path, { headers: { Authorization: `Bearer ${key}` } });
    await answer.text();
    const request = `GET ${probe.path} was answered ${answer.status}`;
    if (answer.ok) return { isAccepted: true, says: `The service accepts this key: ${request}.` };
    if (answer.status === 401) return { isAccepted: false, says: `The service refuses this key: ${request}.` };
    if (answer.status === 403) {
      return { isAccepted: true, says: `The service knows this key, which lacks a scope: ${request}.` };
    }
    return { isAccepted: undefined, says: `The service cannot say whether it accepts the key: ${request}.` };
  } catch {
    return { isAccepted: undefined, says: 'The key could not be checked: the service did not answer.' };
  }
}
