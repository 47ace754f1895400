import { All, Controller, Get, Post, type Type, VersioningType } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { ApiCreatedResponse, ApiOperation, type OpenAPIObject } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { Config, readConfig } from '../../config.js';
import { Application } from '../application.js';
import { Public } from '../auth/public.decorator.js';
import { IdempotencyKey } from '../idempotency/idempotency-key.js';
import { Idempotent } from '../idempotency/idempotent.decorator.js';

import { OpenApiDocument } from './openapi-document.js';
import { LOCATION_HEADER } from './responses/response-headers.js';
import { Tag } from './tag.decorator.js';

const APPLICATION: Application = {
  info: { title: 'Toy Shop', version: '2.3.4', description: 'Toys.' },
  tags: [{ name: 'Later', description: 'Nothing yet.' }],
  headerExamples: { Location: 'https://toys.example/v1/toys/1' },
  readGuide: () => '',
  defaultScopes: ['toys:read'],
};
const PROVIDERS = [
  OpenApiDocument,
  { provide: Config, useValue: readConfig({}) },
  { provide: Application, useValue: APPLICATION },
];

async function describeControllers(...controllers: Type[]): Promise<OpenApiDocument> {
  const testingModule = await Test.createTestingModule({
    imports: [DiscoveryModule],
    controllers,
    providers: PROVIDERS,
  }).compile();
  const app = testingModule.createNestApplication();
  app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
  const document = app.get(OpenApiDocument);
  document.describe(app);
  return document;
}

@Controller('toys')
class ToysController {
  @Get()
  list(): void {}
}

describe('OpenApiDocument', () => {
  test('has an operationId for each handler: its name', async () => {
    const { json, yaml } = await describeControllers(ToysController);
    expect(json).toContain('"operationId": "list"');
    expect(yaml).toContain('operationId: list');
  });

  test('has the title, version, tags, scopes and examples that the application gives it', async () => {
    @Tag('Games', 'Games to play.')
    @Controller('games')
    class GamesController {
      @Post()
      @ApiCreatedResponse({ headers: LOCATION_HEADER })
      createGame(): void {}
    }
    const document = JSON.parse((await describeControllers(ToysController, GamesController)).json) as OpenAPIObject;
    expect(document.info).toEqual(APPLICATION.info);
    expect(document.tags).toEqual([{ name: 'Games', description: 'Games to play.' }, ...APPLICATION.tags]);
    expect(document.paths['/games']?.post?.tags).toEqual(['Games']);
    expect(document.components).toMatchObject({
      headers: { Location: { example: 'https://toys.example/v1/toys/1' } },
      securitySchemes: { bearerAuth: { description: expect.stringContaining('such as `toys:read`;') as string } },
    });
  });

  test('refuses two handlers of the same name, naming both', async () => {
    @Controller('games')
    class GamesController {
      @Get()
      list(): void {}
    }
    await expect(describeControllers(ToysController, GamesController)).rejects.toThrow(
      'ToysController.list and GamesController.list have the same name',
    );
  });

  test('refuses an operationId that is not the name of the handler', async () => {
    @Controller('games')
    class GamesController {
      @Get()
      @ApiOperation({ operationId: 'searchGames' })
      listGames(): void {}
    }
    await expect(describeControllers(GamesController)).rejects.toThrow("GET /games cannot be described: 'searchGames'");
  });

  test('refuses a handler that is public and idempotent', async () => {
    @Controller('games')
    class GamesController {
      @Post()
      @Public()
      createGame(@Idempotent() key: IdempotencyKey | undefined): unknown {
        return key;
      }
    }
    await expect(describeControllers(GamesController)).rejects.toThrow(
      'GamesController.createGame cannot be @Public() and @Idempotent()',
    );
  });

  test('refuses a handler of all methods', async () => {
    @Controller('games')
    class GamesController {
      @All()
      playGame(): void {}
    }
    await expect(describeControllers(GamesController)).rejects.toThrow('one path and one method');
  });

  test('is not there before an application is described', async () => {
    const document = await Test.createTestingModule({
      imports: [DiscoveryModule],
      providers: PROVIDERS,
    }).compile();
    expect(() => document.get(OpenApiDocument).json).toThrow('before describe()');
  });
});
