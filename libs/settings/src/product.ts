/** The names of the product, where a library shows one. */
export interface Product {
  /** In lower-case letters: the realm of API keys, and the start of metrics, header fields and messages. */
  readonly name: string;
  /** How to run a command of the product on the command line, such as `npm run orders --`. */
  readonly command: string;
  /** The start of every API key that the service makes. Secret scanners search for it, so it never changes. */
  readonly apiKeyPrefix: string;
}

let current: Product = { name: 'service', command: 'service', apiKeyPrefix: 'key_' };

/** Names the product; before anything of it is shown. */
export function nameProduct(product: Product): void {
  current = product;
}

/** The names of the product of this process. */
export function product(): Product {
  return current;
}
