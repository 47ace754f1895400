import { Controller, Get, Header, Module, Post, Version, VERSION_NEUTRAL } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import { Public } from '../../src/platform/auth/public.decorator.js';
import type { HttpCall } from '../support/http-client.js';
import type { Row } from './harness.js';

@Public()
@Controller('test-versioned')
class TestVersionedController {
  @Get()
  @Version('1')
  find(): object {
    return { version: 1 };
  }

  @Get()
  @Version('2')
  @ApiOkResponse({ schema: { type: 'object' } })
  findVersion2(): object {
    return { version: 2 };
  }

  @Get('kept')
  @Version(['2', '3'])
  @Header('Cache-Control', 'max-age=60')
  findKept(): object {
    return { version: '2 or 3' };
  }

  @Get('either')
  @Version(['1', VERSION_NEUTRAL])
  findEither(): object {
    return { version: '1 or none' };
  }

  @Get('any')
  @Version(VERSION_NEUTRAL)
  findAny(): object {
    return { version: 'any' };
  }

  @Get('undeclared')
  findUndeclared(): object {
    return { version: 'undeclared' };
  }

  @Post()
  @Version('2')
  create(): object {
    return { created: 2 };
  }
}

@Public()
@Controller({ path: 'test-versioned-toys', version: '1' })
class TestToysController {
  @Get()
  findToys(): object {
    return { version: 1 };
  }
}

@Public()
@Controller({ path: 'test-versioned-toys', version: '2' })
class TestNewToysController {
  @Get()
  findNewToys(): object {
    return { version: 2 };
  }
}

@Module({ controllers: [TestVersionedController, TestToysController, TestNewToysController] })
export class VersionsModule {}

const FOUND: readonly (readonly [path: string, version: string | undefined, contains: string])[] = [
  ['/test-versioned', '1', '{"version":1}'],
  ['/test-versioned', '2', '{"version":2}'],
  ['/test-versioned/kept', '2', '2 or 3'],
  ['/test-versioned/kept', '3', '2 or 3'],
  ['/test-versioned/either', '1', '1 or none'],
  ['/test-versioned/any', undefined, 'any'],
  ['/test-versioned/any', '9', 'any'],
  ['/test-versioned-toys', '1', '{"version":1}'],
  ['/test-versioned-toys', '2', '{"version":2}'],
];
const MISSING: readonly (readonly [path: string, version: string | undefined])[] = [
  ['/test-versioned', undefined],
  ['/test-versioned', '3'],
  ['/test-versioned/either', '2'],
  ['/test-versioned-toys', '3'],
  ['/v1/test-versioned', '1'],
];

/**
 * Requests for handlers of some versions.
 *
 * @param say makes the call for a version, or for none
 */
export function rowsOfVersions(say: (version: string | undefined) => HttpCall): readonly Row[] {
  const title = (method: string, path: string, version = 'none'): string => `${method} ${path}, version ${version}`;
  return [
    ...FOUND.map(([path, version, contains]) => ({
      title: title('GET', path, version),
      path,
      send: say(version),
      status: 200,
      contains,
    })),
    ...MISSING.map(([path, version]) => ({
      title: title('GET', path, version),
      path,
      send: say(version),
      status: 404,
      meant: {
        difference: 'route not found' as const,
        body: expect.objectContaining({ code: 'route_not_found' }) as object,
      },
    })),
    {
      title: title('HEAD', '/test-versioned', '2'),
      method: 'HEAD',
      path: '/test-versioned',
      send: say('2'),
      status: 200,
    },
    {
      title: title('POST', '/test-versioned', '2'),
      method: 'POST',
      path: '/test-versioned',
      send: say('2'),
      status: 201,
    },
    {
      title: title('POST', '/test-versioned', '1'),
      method: 'POST',
      path: '/test-versioned',
      send: say('1'),
      status: 404,
      meant: {
        difference: 'route not found',
        body: expect.objectContaining({
          message: 'No resource has the path /test-versioned for this host and version',
        }) as object,
      },
    },
    {
      title: title('PUT', '/test-versioned', '2'),
      method: 'PUT',
      path: '/test-versioned',
      send: say('2'),
      status: 404,
      meant: {
        difference: 'method not allowed',
        status: 405,
        body: expect.objectContaining({
          message: 'PUT is not supported here; use GET, HEAD, OPTIONS, POST.',
        }) as object,
      },
    },
  ];
}
