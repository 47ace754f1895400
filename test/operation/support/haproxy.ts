import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, startProgram } from '../../support/programs.js';

/** Time in ms between two readiness checks of an instance by a proxy. */
export const CHECK_INTERVAL_MS = 200;

/** A reverse proxy in front of several instances, configured as docs/operating.md recommends. */
export interface Proxy {
  readonly origin: string;
  readonly stop: () => Promise<void>;
}

const configuration = (port: number, instances: readonly number[]): string => `
defaults
  mode http
  timeout connect 2s
  timeout check 2s
  timeout client 60s
  timeout server 60s
  option redispatch 1
frontend clients
  bind 127.0.0.1:${port}
  default_backend petstore
backend petstore
  option httpchk GET /health/ready
  retry-on conn-failure empty-response
  http-request disable-l7-retry unless METH_GET or { req.fhdr(Idempotency-Key) -m found }
  default-server check inter ${CHECK_INTERVAL_MS}ms fall 2 rise 2
${instances.map((instance, index) => `  server petstore${index + 1} 127.0.0.1:${instance}`).join('\n')}
`;

/** Starts haproxy on a free port, in front of instances on these ports. */
export async function startProxy(instances: readonly number[]): Promise<Proxy> {
  const directory = mkdtempSync(join(tmpdir(), 'petstore-haproxy-'));
  const file = join(directory, 'configuration');
  const port = await freePort();
  writeFileSync(file, configuration(port, instances));
  const { stop } = await startProgram('haproxy', ['-db', '-f', file], port);
  rmSync(directory, { recursive: true });
  return { origin: `http://127.0.0.1:${port}`, stop };
}
