import { type INestApplication, Injectable, type Type, type WebSocketAdapter } from '@nestjs/common';
import { EXCEPTION_FILTERS_METADATA } from '@nestjs/common/constants.js';
import { ApplicationConfig, DiscoveryService, HttpAdapterHost, Reflector } from '@nestjs/core';
import type { Request } from 'express';
import { Config } from '../../config.js';
import { ApiKeyGuard } from '../auth/api-key.guard.js';
import { PUBLIC_METADATA } from '../auth/public.decorator.js';
import { REQUIRED_SCOPES_METADATA } from '../auth/require-scopes.decorator.js';
import { toApiError } from '../errors/error.filter.js';
import { serviceUnavailable } from '../errors/service-unavailable.js';
import { StartupError } from '../errors/startup-error.js';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';
import type { HandshakeGuard } from '../server/upgrades/handshakes.js';
import { GatewayClients } from './gateway-clients.js';
import { MessageErrorFilter } from './message-error.filter.js';
import {
  isServerOfSocketIo,
  isSocketIo,
  isWs,
  type NamespaceOfSocketIo,
  type ServerOfSocketIo,
} from './socket-servers.js';

/** Metadata keys of `@WebSocketGateway()`. Its package is not imported: an application without gateways does not have it. */
const IS_GATEWAY = 'websockets:is_gateway';
const GATEWAY_PORT = 'port';
const GATEWAY_OPTIONS = 'websockets:gateway_options';

/** The operation name of handshakes in usage, log and metrics. */
const CONNECT = 'connect';

/** The requirements for connecting to a path or to a namespace of socket.io. */
interface Access {
  readonly isPublic: boolean;
  readonly scopes: readonly string[];
}

/** A path on which a socket server accepts handshakes. */
interface Entrance extends Access {
  /** Whether the server also answers requests without `Upgrade`. */
  readonly answersRequests: boolean;
  matches(url: string): boolean;
  /** Whether the server has reached its limit of clients. */
  isFull(url: string): boolean;
}

interface GatewayOptions {
  readonly path?: string;
  readonly namespace?: unknown;
}

/**
 * Protects the WebSocket gateways of all modules as controllers are protected.
 *
 * - A handshake needs an API key, whatever listens for it. A path, or a namespace of socket.io, is open only if all of its
 *   gateways have `@Public()`. The key needs the scopes that `@RequireScopes` names at these gateways.
 * - A client's message longer than MAX_BODY_BYTES closes its connection.
 * - Clients whose key is revoked or expires are disconnected (see `GatewayClients`).
 * - `MessageErrorFilter` answers the errors of messages.
 *
 * It wraps the application's WebSocketAdapter, which creates the socket servers.
 */
@Injectable()
export class Gateways implements HandshakeGuard {
  private readonly entrances: Entrance[] = [];
  private readonly watched = new WeakSet<WebSocketAdapter>();
  private gateways: Type[] = [];

  /** @internal */
  constructor(
    private readonly config: Config,
    private readonly discovery: DiscoveryService,
    private readonly reflector: Reflector,
    private readonly guard: ApiKeyGuard,
    private readonly clients: GatewayClients,
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
  ) {}

  /**
   * @internal Must be called before the application is initialised.
   *
   * @throws StartupError for a gateway on a port of its own
   */
  setUp(app: INestApplication): void {
    this.gateways = this.discovery
      .getProviders()
      .flatMap(({ metatype }) => (metatype && Reflect.hasMetadata(IS_GATEWAY, metatype) ? [metatype as Type] : []));
    for (const gateway of this.gateways) {
      refuseOwnPort(gateway);
      addFilter(gateway);
    }
    this.adapterHost.httpAdapter.guardHandshakes(this);
    this.watchEachAdapter(app.get(ApplicationConfig));
  }

  /** Opens one path: handshakes there need no key, as with `@Public()` at a gateway. */
  open(path: string): void {
    this.entrances.push(entranceOfPath(path, { isPublic: true, scopes: [] }));
  }

  answers({ url, headers }: Request): boolean {
    // While the server drains, adapters no longer accept handshakes, so the guard must answer them.
    const isLate = headers.upgrade !== undefined && this.adapterHost.httpAdapter.isDraining;
    return this.entrances.some((entrance) => (entrance.answersRequests || isLate) && entrance.matches(url));
  }

  admit(request: Request): unknown {
    request.context.operation = CONNECT;
    const entrances = this.entrances.filter((entrance) => entrance.matches(request.url));
    if (this.adapterHost.httpAdapter.isDraining) throw serviceUnavailable('draining');
    if (entrances.some((entrance) => entrance.isFull(request.url))) throw serviceUnavailable('gateway_clients');
    if (entrances.length > 0 && entrances.every(({ isPublic }) => isPublic)) return true;
    return this.guard.admit(request, { operation: CONNECT, scopes: entrances.flatMap(({ scopes }) => scopes) });
  }

  /** Watches the WebSocketAdapter that the application has, and each that it is given later. */
  private watchEachAdapter(applicationConfig: ApplicationConfig): void {
    const adapter = applicationConfig.getIoAdapter() as WebSocketAdapter | undefined;
    if (adapter) this.watch(adapter);
    const setAdapter = applicationConfig.setIoAdapter.bind(applicationConfig);
    applicationConfig.setIoAdapter = (next) => {
      this.watch(next);
      setAdapter(next);
    };
  }

  /** Limits and closes each socket server that an adapter makes. */
  private watch(adapter: WebSocketAdapter): void {
    if (this.watched.has(adapter)) return;
    this.watched.add(adapter);
    const { maxBodyBytes } = this.config;
    const create = adapter.create.bind(adapter);
    adapter.create = (port: number, options?: GatewayOptions): unknown => {
      const server: unknown = create(port, { maxPayload: maxBodyBytes, maxHttpBufferSize: maxBodyBytes, ...options });
      this.close(server, options ?? {}, adapter);
      return server;
    };
    this.clients.watch(adapter, this.adapterHost.httpAdapter.getHttpServer());
  }

  /** Closes a socket server or a namespace to clients without a key, unless it is public. */
  private close(server: unknown, options: GatewayOptions, adapter: WebSocketAdapter): void {
    const access = this.accessOf(options);
    if (isWs(server)) {
      this.entrances.push(entranceOfPath(server.path, access));
    } else if (isSocketIo(server)) {
      if (isServerOfSocketIo(server)) this.entrances.push(this.entranceOfSocketIo(server, options));
      this.closeNamespace(server, access);
    } else {
      throw new StartupError(
        `${adapter.constructor.name} makes servers that the platform cannot close to clients without an API key. ` +
          'Use WsAdapter of @nestjs/platform-ws or IoAdapter of @nestjs/platform-socket.io, or a subclass of one.',
      );
    }
    if (!access.isPublic) this.clients.close(server, access.scopes);
  }

  private closeNamespace(server: NamespaceOfSocketIo, { isPublic, scopes }: Access): void {
    if (isPublic) return;
    server.use((socket, next) => {
      const { request } = socket;
      const admitted = async (): Promise<unknown> =>
        request.context.clientId === undefined
          ? this.guard.admit(request, { operation: CONNECT, scopes })
          : this.guard.recheck(request, scopes);
      admitted().then(
        () => next(),
        (error: unknown) => next(refusalOf(error)),
      );
    });
  }

  private entranceOfSocketIo(server: ServerOfSocketIo, { path }: GatewayOptions): Entrance {
    return {
      answersRequests: true,
      // The client names the namespace only after the handshake, so each namespace is closed separately.
      isPublic: this.gateways.some((gateway) => optionsOf(gateway).path === path && this.isPublic(gateway)),
      scopes: [],
      matches: (url) => url.startsWith(server.path()),
      // Clients of long polling may have no connection at the moment, so MAX_CONNECTIONS must bound the clients, too.
      isFull: (url) => server.engine.clientsCount >= this.config.maxConnections && !/[?&]sid=/.test(url),
    };
  }

  /** What the gateways of a path or namespace require. Without a gateway it is closed. */
  private accessOf({ path, namespace }: GatewayOptions): Access {
    const here = this.gateways.filter((gateway) => {
      const options = optionsOf(gateway);
      return options.path === path && slashed(options.namespace) === slashed(namespace);
    });
    const closed = here.filter((gateway) => !this.isPublic(gateway));
    return {
      isPublic: here.length > 0 && closed.length === 0,
      scopes: closed.flatMap(
        (gateway) => this.reflector.get<string[] | undefined>(REQUIRED_SCOPES_METADATA, gateway) ?? [],
      ),
    };
  }

  private isPublic(gateway: Type): boolean {
    return this.reflector.get<boolean | undefined>(PUBLIC_METADATA, gateway) ?? false;
  }
}

function optionsOf(gateway: Type): GatewayOptions {
  return (Reflect.getMetadata(GATEWAY_OPTIONS, gateway) as GatewayOptions | undefined) ?? {};
}

/** A namespace with a leading slash, as Nest names it. */
function slashed(namespace: unknown): unknown {
  return typeof namespace !== 'string' || namespace.startsWith('/') ? namespace || undefined : `/${namespace}`;
}

function entranceOfPath(path: string, access: Access): Entrance {
  return {
    ...access,
    answersRequests: false,
    // Parses the path as WsAdapter does.
    matches: (url) => URL.canParse(url, 'ws://localhost/') && new URL(url, 'ws://localhost/').pathname === path,
    // MAX_CONNECTIONS bounds the clients: each has a connection.
    isFull: () => false,
  };
}

function refuseOwnPort(gateway: Type): void {
  if (!Reflect.getMetadata(GATEWAY_PORT, gateway)) return;
  throw new StartupError(
    `${gateway.name} listens on a port of its own, where nothing checks API keys and limits. Leave the port out of ` +
      '@WebSocketGateway(): it is then served on PORT, by its path or namespace.',
  );
}

/** Binds the platform's filter to a gateway, after the gateway's own filters: Nest does not apply global filters to it. */
function addFilter(gateway: Type): void {
  const filters = (Reflect.getMetadata(EXCEPTION_FILTERS_METADATA, gateway) as unknown[] | undefined) ?? [];
  if (filters.some((filter) => filter instanceof MessageErrorFilter)) return;
  // Nest asks the last filter first.
  Reflect.defineMetadata(EXCEPTION_FILTERS_METADATA, [new MessageErrorFilter(), ...filters], gateway);
}

/** The error for a client that may not connect to a namespace: `connect_error` of socket.io, with the Error body as `data`. */
function refusalOf(error: unknown): Error {
  const refusal = toApiError(error);
  return Object.assign(new Error(refusal.message), { data: { ...refusal.body() } });
}
