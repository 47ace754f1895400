import { Body, Controller, Module, Param, Post, Version } from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { type Observable, of } from 'rxjs';
import { Created, Idempotency, type IdempotencyKey, Idempotent, type Kept } from '#resources';
import { Int64Property, OpaqueParameter, TextProperty } from '#input';
import { RequireScopes } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* The address of what a module has created, and what follows it once. The routes of the application itself are in `contract`. */

const OVER = 2n ** 53n + 1n;

class Game {
  @Int64Property({ description: 'Its id.', example: 1 }) id: bigint;
}

const gameOf = (id: bigint): Game => Object.assign(new Game(), { id });

class NamedGame {
  @TextProperty({ description: 'Its id.', minLength: 1, maxLength: 20 }) id: string;
}

class NoGame {
  @OpaqueParameter({ description: 'A name.', required: false }) name: string;
}

let made = 0;
/** The ids of which others were told. */
const announced: bigint[] = [];

@Controller('test-games')
@RequireScopes()
class TestGamesController {
  constructor(private readonly idempotency: Idempotency) {}

  @Post()
  @Created(Game, 'The game.')
  createGame(@Body() { id }: Game): Game {
    return gameOf(id);
  }

  @Post('once')
  @Created(Game, 'The game, once for a key.')
  async createOnce(@Body() sent: Game, @Idempotent() key: IdempotencyKey | undefined): Promise<Kept<Game>> {
    const added = await this.idempotency.answer(key, sent, () => Promise.resolve(gameOf(sent.id + BigInt(made++))));
    if (!key?.isReplayed) announced.push(sent.id);
    return added;
  }

  @Post('named/:name')
  @Created(NamedGame, 'The game.')
  createNamed(@Param('name') name: string): Observable<NamedGame> {
    return of({ id: name });
  }

  @Post('none')
  @Created(Game, 'No game.')
  createNone(): Game {
    return { name: 'nobody' } as unknown as Game;
  }

  @Post()
  @Version('2')
  @Created(Game, 'The game.')
  createGameAnew(): Game {
    return gameOf(2n);
  }
}

@Controller('test-boards/:board/games')
@RequireScopes()
class TestBoardsController {
  @Post()
  @Created(Game, 'The game on the board.')
  createOnBoard(@Param('board') _board: string): Promise<Game> {
    return Promise.resolve(gameOf(OVER));
  }
}

@Module({ controllers: [TestBoardsController] })
class BoardsModule {}

@Module({
  imports: [BoardsModule, RouterModule.register([{ path: 'test-house', module: BoardsModule }])],
  controllers: [TestGamesController],
})
class GamesModule {}

describe('the location of what was created', () => {
  const root = 'https://api.example.com/store';
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({ features: [GamesModule], settings: { PUBLIC_BASE_URL: `${root}/v1` } });
  });
  afterAll(() => app.close());

  test.each<[path: string, body: object, location: string]>([
    ['/v1/test-games', { id: 7 }, '/v1/test-games/7'],
    ['/v1/test-games', { id: OVER }, '/v1/test-games/9007199254740993'],
    ['/v1/test-games', { id: -(2n ** 63n) }, '/v1/test-games/-9223372036854775808'],
    ['/v1/test-games?a=b', { id: 7 }, '/v1/test-games/7'],
    ['/v2/test-games', {}, '/v2/test-games/2'],
    ['/v1/test-games/named/a%2Fb', {}, '/v1/test-games/named/a%2Fb/a%2Fb'],
    ['/v1/test-games/named/%C3%96l%0d%0a', {}, '/v1/test-games/named/%C3%96l%0d%0a/%C3%96l%0D%0A'],
    ['/v1/test-house/test-boards/3/games', {}, '/v1/test-house/test-boards/3/games/9007199254740993'],
  ])('201: POST %s has the address of what it has created', async (path, body, location) => {
    const { status, headers } = await app.client.post(path, body);
    expect([status, headers.location]).toEqual([201, root + location]);
  });

  test.each([7n, OVER])('201: a repeated request has the address of the first response (%s)', async (id) => {
    const headers = { 'idempotency-key': `key-${id}` };
    const first = await app.client.post('/v1/test-games/once', { id }, { headers });
    const again = await app.client.post('/v1/test-games/once', { id }, { headers });
    expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([201, first.text, 'true']);
    const location = `${root}/v1/test-games/once/${first.json.id}`;
    expect([first.headers.location, again.headers.location]).toEqual([location, location]);
  });

  test('an event after the commit is sent once for a key, however many requests arrive at the same moment', async () => {
    announced.length = 0;
    const ids = Array.from({ length: 20 }, (_, index) => BigInt(index));
    const add = (id: bigint, key?: string): Promise<HttpAnswer> =>
      app.client.post('/v1/test-games/once', { id }, { headers: { 'idempotency-key': key } });
    const answers = await Promise.all(ids.flatMap((id) => Array.from({ length: 8 }, () => add(id, `event ${id}`))));
    expect(answers.filter(({ status }) => status !== 201)).toEqual([]);
    await add(20n);
    expect(announced.sort((one, other) => Number(one - other))).toEqual([...ids, 20n]);
  });

  test('500: a response without an id names its handler in the log', async () => {
    const { status, headers } = await app.client.post('/v1/test-games/none', {}, { expects500: true });
    expect([status, headers.location]).toEqual([500, undefined]);
    const errors = app.log.lines.filter(({ level }) => level >= 50).map((line) => JSON.stringify(line));
    const sentence = 'TestGamesController.createNone has @Created, but returned no id.';
    expect(errors).toEqual([expect.stringContaining(sentence)]);
  });
});

test('the compiler refuses a class and a handler without an id', () => {
  // @ts-expect-error -- the class has no id
  expect(Created(NoGame, 'No game.')).toBeDefined();
  class TestCompiled {
    // @ts-expect-error -- the handler returns no id
    @Created(Game, 'A game.')
    create(): Promise<NoGame> {
      return Promise.resolve(new NoGame());
    }
  }
  expect(TestCompiled).toBeDefined();
});
