import { Controller, Get, Module, StreamableFile } from '@nestjs/common';
import { PassThrough } from 'node:stream';
import { Public } from '#operations';

/** Larger than the buffers of a connection. */
export const LARGE = 'x'.repeat(32 * 1024 * 1024);

/** Handlers whose responses take as long as a test wants. */
@Public()
@Controller('test-slow')
export class TestSlowController {
  /** A function for each request in flight; calling it sends the response. */
  readonly waiting: (() => void)[] = [];
  readonly parts = new PassThrough();

  @Get()
  async answerSlowly(): Promise<string[]> {
    await new Promise<void>((resolve) => this.waiting.push(resolve));
    return ['slow'];
  }

  @Get('large')
  answerLarge(): string {
    return LARGE;
  }

  @Get('parts')
  answerInParts(): StreamableFile {
    this.parts.write('first ');
    return new StreamableFile(this.parts);
  }
}

@Module({ controllers: [TestSlowController] })
export class SlowModule {}
