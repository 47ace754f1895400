import { createTestDatabase, engine } from './support/database.js';
test('x', async () => { for (let i=0;i<4;i++) {const t=Date.now(); const d = await createTestDatabase(); const u=Date.now(); await d.drop(); console.log(engine, d.settings, u-t, Date.now()-u); }});
