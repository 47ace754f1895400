import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { StartupError } from '#runtime';

/**
 * Takes Node's own listener of new connections off an HTTP server that has just been created. From then on only the returned
 * function makes a connection one of HTTP, and begins the time in which its first header section must arrive.
 *
 * @throws StartupError if the server has no such listener, or several
 */
export function takeConnections(server: Server): (socket: Socket) => void {
  const [serve, ...others] = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  if (serve === undefined || others.length > 0) {
    throw new StartupError(
      'This version of Node.js is not supported: its HTTP server listens to connections in another way.',
    );
  }
  server.off('connection', serve);
  return (socket) => serve.call(server, socket);
}
