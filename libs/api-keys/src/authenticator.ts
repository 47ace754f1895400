import { Injectable, type OnModuleInit, Scope, type Type } from '@nestjs/common';
import { DiscoveryService, ModuleRef } from '@nestjs/core';
import type { Request } from 'express';
import { StartupError } from '#runtime';
import { ApiKeysService } from './api-keys.service.js';
import type { StoredApiKey } from './stored-api-key.js';

/** The sender of a request, as an `Authenticator` knows it. */
export interface Caller {
  /**
   * The name of the application, not of its user: 1 to 255 printable characters. Limits, usage and idempotency keys belong to it,
   * and it shares them with API keys of a client with this name.
   */
  readonly client: string;
  /** For `@RequireScopes`. */
  readonly scopes: readonly string[];
}

/**
 * Another way than an API key to say who calls, such as a JWT or a client certificate. A provider that extends this class, in
 * any module, is found at start. It is asked for each request to a handler that is not public, unless the bearer token begins
 * like a key of this service; and twice a second while the response is an event stream.
 */
export abstract class Authenticator {
  /**
   * The sender of a request; undefined if the request does not say it in this way. Then the next provider is asked, and at last the
   * bearer token has to be an API key. The request fails with an exception that it throws. Must not read the body.
   */
  abstract authenticate(request: Request): Caller | undefined | Promise<Caller | undefined>;
}

/** All authenticators of the application, in the order of its modules. */
@Injectable()
export class Authenticators implements OnModuleInit {
  all: readonly Authenticator[] = [];

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly apiKeys: ApiKeysService,
    private readonly modules: ModuleRef,
  ) {}

  /** @throws StartupError for an authenticator with the scope of a request */
  onModuleInit(): void {
    const found = this.discovery.getProviders().filter(({ instance }) => instance instanceof Authenticator);
    const scoped = found.find(({ token }) => this.modules.introspect(token as Type).scope !== Scope.DEFAULT);
    if (scoped) throw new StartupError(`${scoped.name} must be a singleton: one authenticator serves all requests.`);
    this.all = [...new Set(found.map(({ instance }) => instance as Authenticator))];
  }

  /** What stands for the sender of a request in place of an API key; undefined if no authenticator knows it. */
  async identify(request: Request): Promise<StoredApiKey | undefined> {
    for (const authenticator of this.all) {
      const caller = await authenticator.authenticate(request);
      if (caller === undefined) continue;
      return { ...(await this.apiKeys.ofClient(caller.client)), scopes: caller.scopes };
    }
    return undefined;
  }
}
