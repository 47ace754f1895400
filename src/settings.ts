import { nameProduct } from '#settings';

nameProduct({ name: 'petstore', command: 'npm run petstore --', apiKeyPrefix: 'pets_' });
