import { type INestApplication, Injectable, type Type, type WebSocketAdapter } from '@nestjs/common';
import { EXCEPTION_FILTERS_METADATA } from '@nestjs/common/constants.js';
import { ApplicationConfig, DiscoveryService, HttpAdapterHost, MetadataScanner, Reflector } from '@nestjs/core';
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
import { announcesBody, isOfOtherType } from '../server/requests/request-body.js';
import { GatewayClients } from './gateway-clients.js';
import { MessageErrorFilter } from './message-error.filter.js';
import {
  isServerOfSocketIo,
  isSocketIo,
  isWs,
  type NamespaceOfSocketIo,
  type ServerOfSocketIo,
} from './socket-servers.js';

/** Keys of the metadata of `@WebSocketGateway()`. The package is not imported: an application without gateways lacks it. */
const IS_GATEWAY = 'websockets:is_gateway';
const GATEWAY_PORT = 'port';
const GATEWAY_OPTIONS = 'websockets:gateway_options';

/** What GraphQLModule provides, and what `@Resolver()` and its methods carry. */
export const GRAPHQL_OPTIONS = 'GqlModuleOptions';
const RESOLVER_TYPE = 'graphql:resolver_type';

/** The name under which requests of GraphQL are counted, logged and measured. */
const GRAPHQL = 'graphql';

/** The name under which connections are counted, logged and measured. */
const CONNECT = 'connect';

/** What connecting to one place requires: a path, or a namespace of socket.io. */
interface Access {
  readonly isPublic: boolean;
  readonly scopes: readonly string[];
}

/** A path on which a server of sockets takes handshakes. */
interface Entrance extends Access {
  /** It answers requests without `Upgrade` too. */
  readonly answersRequests: boolean;
  matches(url: string): boolean;
  /** Whether the server holds as many clients as it may. */
  isFull(url: string): boolean;
}

interface GatewayOptions {
  readonly path?: string;
  readonly namespace?: unknown;
}

/**
 * Closes the WebSocket gateways of all modules to clients without a valid API key, as controllers are.
 *
 * - A handshake needs a key, whatever listens for it. A place is open when all of its gateways say `@Public()`. A place is
 *   a path, or a namespace of socket.io; its scopes are those that `@RequireScopes` names at its gateways.
 * - A message of a client longer than MAX_BODY_BYTES closes its connection.
 * - Clients whose key is revoked or expires are disconnected (see `GatewayClients`).
 * - Errors of messages are answered by `MessageErrorFilter`.
 *
 * It does this to the adapter that the application uses, which makes the servers of sockets.
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
    this.closeGraphql(app);
    const bound = app.get(ApplicationConfig);
    const adapter = bound.getIoAdapter() as WebSocketAdapter | undefined;
    if (adapter) this.watch(adapter);
    const setAdapter = bound.setIoAdapter.bind(bound);
    bound.setIoAdapter = (next) => {
      this.watch(next);
      setAdapter(next);
    };
  }

  /** Opens one path, whatever listens there: handshakes need no key, as with `@Public()` at a gateway. */
  open(path: string): void {
    this.entrances.push(entranceOfPath(path, { isPublic: true, scopes: [] }));
  }

  answers({ url, headers }: Request): boolean {
    // Adapters take no handshakes while the server drains.
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

  /**
   * GraphQLModule answers its path before any guard runs, and then calls resolvers. So the path needs a key, unless a
   * resolver is public: the guard then decides for each. Its server finds the parsed body, as on stock Nest.
   */
  private closeGraphql(app: INestApplication): void {
    const providers = this.discovery.getProviders();
    const isOpen = providers.some(({ metatype }) => isPublicResolver(metatype as Type | null));
    const prepare = async (request: Request): Promise<void> => {
      request.context.operation = GRAPHQL;
      if (!isOpen) await this.guard.admit(request, { operation: GRAPHQL, scopes: [] });
      await showJsonBody(request);
    };
    for (const { token, instance } of providers) {
      if (token !== GRAPHQL_OPTIONS) continue;
      const { path = '/graphql' } = (instance ?? {}) as { path?: string };
      app.use(path, (request: Request, _response: unknown, next: (error?: unknown) => void) => {
        prepare(request).then(() => next(), next);
      });
    }
  }

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

  /** Closes a server of sockets, or a namespace, to those without a key. */
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
      // The namespace is named behind the handshake, so each namespace is closed by itself.
      isPublic: this.gateways.some((gateway) => optionsOf(gateway).path === path && this.isPublic(gateway)),
      scopes: [],
      matches: (url) => url.startsWith(server.path()),
      // Long polling has clients without a connection.
      isFull: (url) => server.engine.clientsCount >= this.config.maxConnections && !/[?&]sid=/.test(url),
    };
  }

  /** What the gateways of a place require. A place without a gateway is closed. */
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

/** Replaces the promise in `request.body` by the parsed JSON. A body of another type stays unread. */
async function showJsonBody(request: Request): Promise<void> {
  if (request.context.isBodySet) return;
  const isJson = announcesBody(request) && !isOfOtherType(request, { types: undefined });
  request.body = isJson ? await (request.body as Promise<unknown>) : undefined;
}

/** Whether a class has a method that resolves something, and that `@Public()` opens. */
function isPublicResolver(metatype: Type | null): boolean {
  const prototype = (metatype?.prototype ?? {}) as Record<string, unknown>;
  return new MetadataScanner().getAllMethodNames(prototype).some((name) => {
    const method = prototype[name] as object;
    return (
      Reflect.hasMetadata(RESOLVER_TYPE, method) &&
      [method, metatype as Type].some((target) => Reflect.hasMetadata(PUBLIC_METADATA, target))
    );
  });
}

function optionsOf(gateway: Type): GatewayOptions {
  return (Reflect.getMetadata(GATEWAY_OPTIONS, gateway) as GatewayOptions | undefined) ?? {};
}

/** A namespace as Nest names it: with a slash before it. */
function slashed(namespace: unknown): unknown {
  return typeof namespace !== 'string' || namespace.startsWith('/') ? namespace || undefined : `/${namespace}`;
}

function entranceOfPath(path: string, access: Access): Entrance {
  return {
    ...access,
    answersRequests: false,
    // As WsAdapter finds the path.
    matches: (url) => URL.canParse(url, 'ws://localhost/') && new URL(url, 'ws://localhost/').pathname === path,
    // Each client has a connection, which MAX_CONNECTIONS counts.
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

/** Binds the platform's filter to a gateway, behind its own ones: Nest gives gateways no filters of all modules. */
function addFilter(gateway: Type): void {
  const filters = (Reflect.getMetadata(EXCEPTION_FILTERS_METADATA, gateway) as unknown[] | undefined) ?? [];
  if (filters.some((filter) => filter instanceof MessageErrorFilter)) return;
  // Nest asks the last one first.
  Reflect.defineMetadata(EXCEPTION_FILTERS_METADATA, [new MessageErrorFilter(), ...filters], gateway);
}

/** What socket.io tells a client that may not connect to a namespace: `connect_error` with the Error body as `data`. */
function refusalOf(error: unknown): Error {
  const refusal = toApiError(error);
  return Object.assign(new Error(refusal.message), { data: { ...refusal.body() } });
}
