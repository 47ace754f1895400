/** Largest number of clients that a metric of one process counts separately: each is a time series in Prometheus. */
const MAX_COUNTED_CLIENTS = 100;

/** The label of all further clients. */
const OTHER_CLIENTS = '(others)';

/** The clients that a metric counts separately. */
export class CountedClients {
  private readonly names = new Set<string>();

  /** The label for a client: its name, or `(others)` beyond the first hundred. */
  labelOf(client: string): string {
    if (this.names.has(client)) return client;
    if (this.names.size >= MAX_COUNTED_CLIENTS) return OTHER_CLIENTS;
    this.names.add(client);
    return client;
  }
}
