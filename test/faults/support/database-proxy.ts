import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** An address of a database that can be switched to another server or cut off. */
export class DatabaseProxy {
  private readonly sockets = new Set<Socket>();
  private isSwallowing = false;
  private refusal: Buffer | undefined;

  private constructor(
    private readonly server: Server,
    private target: URL,
  ) {}

  static async start(targetUrl: string): Promise<DatabaseProxy> {
    const server = createServer();
    const proxy = new DatabaseProxy(server, new URL(targetUrl));
    server.on('connection', (socket) => proxy.forward(socket));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return proxy;
  }

  /** The target's URI with the proxy's address. */
  get url(): string {
    const url = new URL(this.target);
    url.hostname = '127.0.0.1';
    url.port = String((this.server.address() as AddressInfo).port);
    return url.href;
  }

  /** Connects new clients to this server. Existing connections stay where they are. */
  switchTo(targetUrl: string): void {
    this.target = new URL(targetUrl);
  }

  /**
   * Drops all data in both directions, as when a machine disappears from the network. Existing connections stay open
   * but never work again; new ones are accepted and get no answer.
   */
  swallow(): void {
    this.isSwallowing = true;
    for (const socket of this.sockets) {
      socket.unpipe();
      socket.resume();
    }
  }

  /** Resets all connections at once. */
  reset(): void {
    this.sockets.forEach((socket) => socket.resetAndDestroy());
  }

  /** Answers log-ins with an error of this SQLSTATE, as a server or pooler does, and closes all connections that stand. */
  refuseLogIns(code: string): void {
    const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mno session for you\0\0`);
    this.refusal = Buffer.concat([Buffer.from('E'), Buffer.alloc(4), fields]);
    this.refusal.writeInt32BE(4 + fields.length, 1);
    this.reset();
  }

  /** Connects new clients to the target again. */
  deliver(): void {
    this.isSwallowing = false;
    this.refusal = undefined;
  }

  async stop(): Promise<void> {
    this.sockets.forEach((socket) => socket.destroy());
    await new Promise((done) => this.server.close(done));
  }

  private forward(socket: Socket): void {
    this.keep(socket);
    if (this.isSwallowing) {
      socket.resume();
      return;
    }
    const { refusal } = this;
    if (refusal !== undefined) {
      socket.once('data', () => socket.end(refusal));
      return;
    }
    const other = connect(Number(this.target.port), this.target.hostname);
    this.keep(other);
    socket.pipe(other);
    other.pipe(socket);
    socket.on('close', () => other.destroy());
    other.on('close', () => {
      // A machine that disappears does not close its connections.
      if (!this.isSwallowing) socket.destroy();
    });
  }

  private keep(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.sockets.delete(socket));
  }
}
