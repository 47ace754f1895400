import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { table } from '#service';
import { RepositoryCopy } from '../test/support/repository-copy.js';
import { OURS } from './options.js';
import type { Result } from './report.js';
import type { Workload } from './workloads.js';

/** Additions of a team, by their name in the table; the first one is none. */
export const TEAMS: Readonly<Record<string, string>> = {
  [OURS]: '',
  'a feature': 'feature',
  'an interceptor': 'interceptor',
  'an async guard': 'guard',
  'all three': 'feature,interceptor,guard',
};

/** The workloads of the generated feature, and those of the pets that do the same. */
const OWN_WORKLOADS: Readonly<Record<string, string>> = { things: 'list', thing: 'get' };

const MAIN = `
import { type CallHandler, type CanActivate, type ExecutionContext, Module, type NestInterceptor } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import type { Observable } from 'rxjs';
import { PlatformModule, startService } from '#service';
import { PET_STORE } from './app.description.js';
import { PetsModule } from './pets/pets.module.js';
import { ThingsModule } from './things/things.module.js';

class NoInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle();
  }
}

class AsyncGuard implements CanActivate {
  async canActivate(): Promise<boolean> {
    return Promise.resolve(true);
  }
}

const team = process.env['TEAM'] ?? '';

@Module({
  imports: team.includes('feature') ? [ThingsModule] : [],
  providers: [
    ...(team.includes('interceptor') ? [{ provide: APP_INTERCEPTOR, useClass: NoInterceptor }] : []),
    ...(team.includes('guard') ? [{ provide: APP_GUARD, useClass: AsyncGuard }] : []),
  ],
})
class TeamModule {}

@Module({ imports: [PlatformModule.forRoot(PET_STORE), PetsModule, TeamModule] })
class AppModule {}

await startService(AppModule);
`;

/** A built copy of the service with a generated feature and the parts of TEAMS, which the variable TEAM chooses. */
export async function buildOrdinary(): Promise<RepositoryCopy> {
  const copy = await RepositoryCopy.create();
  const nest = 'node_modules/@nestjs/cli/bin/nest.js';
  const application = await copy.read('src/app.module.ts');
  await copy.run(nest, ['generate', 'feature', 'things']);
  await writeFile(join(copy.path, 'src/app.module.ts'), application);
  await writeFile(join(copy.path, 'src/ordinary.main.ts'), MAIN);
  await copy.run(nest, ['build']);
  return copy;
}

/** The requests of a workload to the generated feature; undefined if it has none like it. */
export function ownWorkload(workload: Workload): Workload | undefined {
  const own = Object.entries(OWN_WORKLOADS).find(([, like]) => like === workload.name)?.[0];
  if (own === undefined) return undefined;
  const lines: Workload['lines'] = async (...given) =>
    (await workload.lines(...given)).map((line) => line.replace('/v1/pets', '/v1/things'));
  return { name: own, lines };
}

/** Prints what each addition of a team costs the pets, and what the team's own feature costs. */
export function reportOrdinary(results: readonly Result[]): void {
  const rows = results.map((result) => {
    const like = OWN_WORKLOADS[result.workload];
    const reference = results.find(
      ({ workload, connections, server }) =>
        workload === (like ?? result.workload) &&
        connections === result.connections &&
        server === (like === undefined ? OURS : result.server),
    );
    const ratio = reference && (result.cpuUs / reference.cpuUs).toFixed(2);
    return [result.workload, `${result.connections}`, result.server, result.cpuUs.toFixed(1), ratio ?? ''];
  });
  process.stdout.write(
    `${table(['workload', 'conns', 'service with', 'CPU µs', 'ratio'], rows)}\n\n` +
      `The ratio of ${Object.keys(OWN_WORKLOADS).join(' and ')}, of the generated feature, is to ` +
      `${Object.values(OWN_WORKLOADS).join(' and ')} of the same service; all others are to the service without additions.\n`,
  );
}
