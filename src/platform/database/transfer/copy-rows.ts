import type { ClientBase, Connection, Submittable } from 'pg';

interface CopyConnection {
  readonly stream: { cork(): void; uncork(): void };
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/**
 * A `COPY … FROM STDIN` whose rows are sent together with the statement. The embedded engine reads no rows that come later,
 * and for a server it saves a round trip. PostgreSQL skips the rows of a statement that it refuses.
 */
class CopyRows implements Submittable {
  readonly done: Promise<void>;
  private resolve!: () => void;
  private reject!: (error: Error) => void;

  constructor(
    private readonly statement: string,
    private readonly rows: Buffer,
  ) {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  submit(connection: Connection): void {
    const copy = connection as unknown as CopyConnection;
    copy.stream.cork();
    copy.query(this.statement);
    copy.sendCopyFromChunk(this.rows);
    copy.endCopyFrom();
    copy.stream.uncork();
  }

  handleReadyForQuery(): void {
    this.resolve();
  }

  handleError(error: Error): void {
    this.reject(error);
  }

  // pg calls these too.
  handleCopyInResponse(): void {}
  handleCommandComplete(): void {}
}

/**
 * Runs `COPY … FROM STDIN` with these rows, in the format that the statement names.
 *
 * @throws any error of pg
 */
export async function copyRows(client: ClientBase, statement: string, rows: Buffer): Promise<void> {
  const query = new CopyRows(statement, rows);
  client.query(query);
  await query.done;
}
