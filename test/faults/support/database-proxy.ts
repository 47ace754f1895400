import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** The address of a database behind which another server can be put, or nobody. */
export class DatabaseProxy {
  private readonly sockets = new Set<Socket>();
  private isSwallowing = false;

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

  /** The target's URI with this address in it. */
  get url(): string {
    const url = new URL(this.target);
    url.port = String((this.server.address() as AddressInfo).port);
    return url.href;
  }

  /** Whoever connects from now on reaches this server. Connections that there are lead where they led. */
  switchTo(targetUrl: string): void {
    this.target = new URL(targetUrl);
  }

  /**
   * Drops everything that is sent in either direction, as the network does when a machine is gone. Connections stay open
   * and are dead for ever; new ones are accepted and lead nowhere.
   */
  swallow(): void {
    this.isSwallowing = true;
    for (const socket of this.sockets) {
      socket.unpipe();
      socket.resume();
    }
  }

  /** Resets all connections, in the middle of whatever is on them. */
  reset(): void {
    this.sockets.forEach((socket) => socket.resetAndDestroy());
  }

  /** New connections lead to the target again. */
  deliver(): void {
    this.isSwallowing = false;
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
    const other = connect(Number(this.target.port), this.target.hostname);
    this.keep(other);
    socket.pipe(other);
    other.pipe(socket);
    socket.on('close', () => other.destroy());
    other.on('close', () => {
      // A machine that is gone does not say good-bye.
      if (!this.isSwallowing) socket.destroy();
    });
  }

  private keep(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.sockets.delete(socket));
  }
}
