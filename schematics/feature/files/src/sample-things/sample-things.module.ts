import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SampleThingEntity } from './sample-thing.entity.js';
import { SampleThingsController } from './sample-things.controller.js';
import { SampleThingsRepository } from './sample-things.repository.js';
import { SampleThingsService } from './sample-things.service.js';

/** The sample things. Other features may use what it exports. */
@Module({
  imports: [TypeOrmModule.forFeature([SampleThingEntity])],
  controllers: [SampleThingsController],
  providers: [SampleThingsService, SampleThingsRepository],
  exports: [SampleThingsService],
})
export class SampleThingsModule {}
