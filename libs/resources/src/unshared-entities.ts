import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { SharedRepository } from './shared.repository.js';

/** Warns at start of entities whose requests cannot share statements although a `SharedRepository` reads them. */
@Injectable()
export class UnsharedEntities implements OnApplicationBootstrap {
  private readonly log = new Logger(SharedRepository.name);

  constructor(private readonly discovery: DiscoveryService) {}

  onApplicationBootstrap(): void {
    const reasons = this.discovery.getProviders().map(({ instance }) => {
      // Of a repository with the scope of a request, there is none yet.
      return instance instanceof SharedRepository ? instance.reasonNotToShare : undefined;
    });
    for (const reason of new Set(reasons)) {
      if (reason === undefined) continue;
      this.log.warn(
        `${reason}. So its pages, look-ups and inserts run one by one through TypeORM, at about four times the CPU time.`,
      );
    }
  }
}
