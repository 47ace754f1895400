import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { SecuritySchemeObject } from '@nestjs/swagger';
import type { Request } from 'express';
import { ApiKeysService } from './api-keys.service.js';
import type { Caller } from './caller.js';
import type { VerifiedKey } from './stored-api-key.js';

/**
 * Another way than an API key to say who calls, such as a JWT or a client certificate. A provider that extends this class, in
 * any module, is found at start: a singleton, not made for each request. It is asked for each request to a handler that is not public,
 * unless the bearer token begins like a key of this service; and twice a second while the response is an event stream.
 *
 * Scopes, rate limit, usage, retries and the name in the log then work as with API keys. The client gets a row in `keys list`, by
 * which operators see its usage, limit it and revoke it.
 */
export abstract class Authenticator {
  /**
   * The security schemes of the document, by name, for this way to say who calls. The document offers them beside the API key at
   * every operation that is not public. Static, because a command makes the document without instances: not of a factory's.
   *
   * @example static override readonly securitySchemes = { jwt: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } as const;
   */
  static readonly securitySchemes: Readonly<Record<string, SecuritySchemeObject>> = {};

  /**
   * The sender of a request; undefined if the request does not say it in this way. Then the next provider is asked, and at last the
   * bearer token has to be an API key. The request fails with an exception that it throws. Must not read the body.
   */
  abstract authenticate(request: Request): Caller | undefined | Promise<Caller | undefined>;
}

/** The security schemes of all authenticators that are provided as classes, by name. */
export function securitySchemesOf(discovery: DiscoveryService): Readonly<Record<string, SecuritySchemeObject>> {
  const types = discovery.getProviders().map(({ metatype }) => metatype as typeof Authenticator | null);
  const found = types.filter((type) => type?.prototype instanceof Authenticator);
  return Object.assign({}, ...found.map((type) => type?.securitySchemes)) as typeof Authenticator.securitySchemes;
}

/** All authenticators of the application, in the order of its modules. */
@Injectable()
export class Authenticators implements OnModuleInit {
  all: readonly Authenticator[] = [];

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly apiKeys: ApiKeysService,
  ) {}

  onModuleInit(): void {
    const instances = this.discovery.getProviders().map(({ instance }) => instance as unknown);
    this.all = [...new Set(instances.filter((instance) => instance instanceof Authenticator))];
  }

  /** What stands for the sender of a request in place of an API key; undefined if no authenticator knows it. */
  async identify(request: Request): Promise<VerifiedKey | undefined> {
    for (const authenticator of this.all) {
      const caller = await authenticator.authenticate(request);
      if (caller === undefined) continue;
      return { ...(await this.apiKeys.ofClient(caller.client)), scopes: caller.scopes, caller };
    }
    return undefined;
  }
}
