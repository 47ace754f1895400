/** Nest on Express with TypeORM, class-validator and @nestjs/swagger, as their documentation teaches. */
import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Module,
  NotFoundException,
  Param,
  Post,
  Query,
  Res,
  UnauthorizedException,
  ValidationPipe,
} from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ApiProperty, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Type } from 'class-transformer';
import { IsIn, IsInt, IsNumberString, IsOptional, IsString, Length, Max, Min } from 'class-validator';
import type { Request, Response } from 'express';
import { Column, Entity, MoreThan, PrimaryGeneratedColumn, Repository } from 'typeorm';
import { API_KEY, DATABASE_URL, IDLE_TIMEOUT_MS, POOL_SIZE, PORT, STATUSES } from './peer.js';

const asNumber = { from: (text: string) => Number(text), to: (value: unknown) => value };

@Entity('pet')
class Pet {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id: string;

  @Column({ type: 'varchar', length: 255 })
  name: string;

  @Column({ name: 'category_id', type: 'bigint', transformer: asNumber })
  categoryId: number;

  @Column({ type: 'enum', enum: STATUSES, enumName: 'pet_status', default: 'available' })
  status: string;
}

class NewPet {
  @ApiProperty()
  @IsString()
  @Length(1, 255)
  name: string;

  @ApiProperty()
  @IsInt()
  categoryId: number;

  @ApiProperty({ enum: STATUSES, required: false })
  @IsOptional()
  @IsIn(STATUSES)
  status?: string;
}

class ListQuery {
  @IsOptional()
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(100)
  limit = 20;

  @IsOptional()
  @IsIn(STATUSES)
  status?: string;

  @IsOptional()
  @IsNumberString()
  cursor?: string;
}

@Injectable()
class ApiKeyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (context.switchToHttp().getRequest<Request>().headers.authorization === `Bearer ${API_KEY}`) return true;
    throw new UnauthorizedException();
  }
}

@Injectable()
class PetsService {
  constructor(@InjectRepository(Pet) private readonly pets: Repository<Pet>) {}

  list({ limit, status, cursor }: ListQuery): Promise<Pet[]> {
    const where = { ...(status && { status }), ...(cursor && { id: MoreThan(cursor) }) };
    return this.pets.find({ where, order: { id: 'ASC' }, take: limit + 1 });
  }

  async get(id: string): Promise<Pet> {
    const pet = await this.pets.findOneBy({ id });
    if (!pet) throw new NotFoundException();
    return pet;
  }

  create(pet: NewPet): Promise<Pet> {
    return this.pets.save(this.pets.create({ status: 'available', ...pet }));
  }
}

const answer = ({ id, name, categoryId, status }: Pet): object => ({ id: Number(id), name, categoryId, status });

@Controller('v1/pets')
class PetsController {
  constructor(private readonly pets: PetsService) {}

  @Get()
  async list(@Query() query: ListQuery, @Res({ passthrough: true }) response: Response): Promise<object[]> {
    const found = await this.pets.list(query);
    const page = found.slice(0, query.limit);
    const last = found.length > query.limit ? page.at(-1) : undefined;
    const filter = query.status === undefined ? '' : `&status=${query.status}`;
    if (last) {
      response.setHeader(
        'Link',
        `<http://localhost:3000/v1/pets?limit=${query.limit}${filter}&cursor=${last.id}>; rel="next"`,
      );
    }
    return page.map(answer);
  }

  @Get(':id')
  async get(@Param('id') id: string): Promise<object> {
    return answer(await this.pets.get(id));
  }

  @Post()
  async create(@Body() body: NewPet, @Res({ passthrough: true }) response: Response): Promise<object> {
    const pet = await this.pets.create(body);
    response.setHeader('Location', `http://localhost:3000/v1/pets/${pet.id}`);
    return answer(pet);
  }
}

@Module({
  imports: [
    TypeOrmModule.forRoot({
      type: 'postgres',
      url: DATABASE_URL,
      entities: [Pet],
      poolSize: POOL_SIZE,
      extra: { idleTimeoutMillis: IDLE_TIMEOUT_MS },
    }),
    TypeOrmModule.forFeature([Pet]),
  ],
  controllers: [PetsController],
  providers: [PetsService, { provide: APP_GUARD, useClass: ApiKeyGuard }],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error'] });
app.useGlobalPipes(new ValidationPipe({ transform: true, whitelist: true }));
const description = new DocumentBuilder().setTitle('Pets').addBearerAuth().build();
SwaggerModule.setup('api', app, () => SwaggerModule.createDocument(app, description));
await app.listen(PORT, '127.0.0.1');
