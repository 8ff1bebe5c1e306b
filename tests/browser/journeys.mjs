// The console in a real browser: `node journeys.mjs SERVICE CHROMIUM [PICTURES]`, with the administrator's address and password and a bearer
// token in EMAIL, PASSWORD and TOKEN. Ends with 1 and says why when a journey fails. With a directory for pictures it takes one of every page.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

// The packages are installed elsewhere.
const require = createRequire(join(process.env.NODE_TOOLS, 'journeys.mjs'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const [service, executablePath, pictures] = process.argv.slice(2);
const { EMAIL: email, PASSWORD: password, TOKEN: token } = process.env;

const SIZES = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };
const NAME = `<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">{{7*7}}"'`;

async function api(method, path, body) {
    const answer = await fetch(service + path, {
        method,
        headers: { Authorization: `Bearer ${token}`, Version: 'V0', ...(body && { 'Content-Type': 'application/json' }) },
        body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
}

async function stateOf(document) {
    return (await api('GET', `/api/documents/${document}`)).state;
}

// A customer with a name, a contract and usage on it; answers the reference of its invoice.
async function sell(customer, name) {
    await api('POST', '/api/customers/', { customer_ref: customer, name });
    const product = { product_pricing_ref: 'api-plan', billing_start_date: '2026-01-01', billing_end_date: '2099-12-31' };
    await api('POST', '/api/contracts/', { customer_ref: customer, products: [product] });
    const timestamp = new Date().toISOString();
    const event = { timestamp, customer_ref: customer, usage_product_ref: 'api-calls', quantity: 1500 };
    return (await api('POST', '/api/usage/event', event)).related_document_ref;
}

async function logIn(page) {
    await page.fill('[name=email]', email);
    await page.fill('[name=password]', password);
    await page.click('main button');
}

async function loggedIn(context) {
    const page = await context.newPage();
    await page.goto(`${service}/console`);
    await logIn(page);
    await page.waitForSelector('h1:text("Home")');
    return page;
}

// What people do, on a browser with scripts and on one without.
const journeys = {
    async 'a wrong password keeps the address, the right one leads where one wanted to go'(context) {
        const page = await context.newPage();
        await page.goto(`${service}/console/documents?state=DRAFT`);
        await page.fill('[name=email]', email);
        await page.fill('[name=password]', 'not the right one');
        await page.click('main button');
        await page.waitForSelector('[role=alert]');
        assert.equal(await page.inputValue('[name=email]'), email);
        assert.equal(await page.inputValue('[name=password]'), '');
        await page.fill('[name=password]', password);
        await page.click('main button');
        await page.waitForURL('**/console/documents?state=DRAFT');
    },

    async 'a session that ended leads to the log-in and back'(context) {
        const page = await loggedIn(context);
        await context.clearCookies();
        await page.click('nav.parts >> text=Contracts');
        await logIn(page);
        await page.waitForURL('**/console/contracts');
        await page.click('text=Log out');
        await page.waitForURL('**/console/log-in');
        await page.goto(`${service}/console/contracts`);
        assert.equal(new URL(page.url()).pathname, '/console/log-in');
    },

    async 'an amount opens into its events, and an event into its document'(context, of) {
        const document = await sell(`opens-${of.length}`, 'Opens Ltd');
        const page = await loggedIn(context);
        await page.goto(`${service}/console/documents/${document}`);
        await page.click('summary:text("How it comes about")');
        await page.click('text=The events behind it');
        await page.click('tbody tr td:first-child a');
        await page.waitForSelector('h1:text("Usage event")');
        await page.click('dd a[href^="/console/documents/"]');
        await page.waitForURL(`**/console/documents/${document}`);
    },

    async 'a document is issued, paid and its payment reversed, and each says so'(context, of) {
        const document = await sell(`pays-${of.length}`, 'Pays Ltd');
        const page = await loggedIn(context);
        await page.goto(`${service}/console/documents/${document}`);
        await page.click('summary:text("Issue now")');
        await page.click('button:text("Issue")');
        await page.waitForSelector('[role=status]:text("It was issued.")');
        assert.equal(await stateOf(document), 'ISSUED');
        await page.click('summary:text("Record a payment")');
        await page.fill('[name=amount]', 'ten');
        await page.click('button:text("Record")');
        assert.match(await page.innerText('[role=alert]'), /amount/);
        await page.click('summary:text("Record a payment")');
        await page.click('button:text("Record")');
        await page.waitForSelector('[role=status]:text("The payment was recorded.")');
        assert.equal(await stateOf(document), 'PAID');
        await page.click('button:text("Reverse")');
        await page.waitForSelector('[role=status]:text("The payment was reversed.")');
        assert.equal(await stateOf(document), 'ISSUED');
    },

    async 'a customer is made, and a wrong field keeps what was said'(context, of) {
        const page = await loggedIn(context);
        await page.click('nav.parts >> text=Customers');
        await page.click('main >> text=New');
        await page.fill('[name=name]', 'Typed Ltd');
        await page.fill('[name=customer_ref]', `typed-${of.length}`);
        await page.fill('[name=tax]', 'nineteen');
        await page.click('button:text("Make")');
        await page.waitForSelector('.field:has([name=tax]) .wrong');
        assert.equal(await page.inputValue('[name=name]'), 'Typed Ltd');
        await page.fill('[name=tax]', '19');
        await page.click('button:text("Make")');
        await page.waitForSelector('[role=status]:text("It was made.")');
        await page.click('main >> text=Edit');
        await page.fill('[name=name]', 'Typed Limited');
        await page.click('button:text("Save")');
        await page.waitForSelector('h1:text("Typed Limited")');
    },

    async 'a file is imported with its columns chosen, and undone'(context, of) {
        const customer = `imports-${of.length}`;
        const document = await sell(customer, 'Imports Ltd');
        const quantities = async () => (await api('GET', `/api/usage/event/filter?customer_ref=${customer}`)).map((event) => event.quantity);
        assert.deepEqual(await quantities(), [1500]);
        const at = new Date().toISOString();
        const lines = [1, 2, 3].map((n) => `${customer}/${n};${at};${customer};api-calls;${n}0;secret\n`);
        const file = `Nr;Zeit;Kunde;Ding;Menge;Notiz\n${lines.join('')}${customer}/4;${at};nobody;api-calls;1;x\n`;
        const choose = async () => {
            await page.click('nav.parts >> text=Imports');
            await page.click('main >> text=Import a file');
            await page.setInputFiles('[name=file]', { name: `${customer}.csv`, mimeType: 'text/csv', buffer: Buffer.from(file) });
            await page.click('button:text("Look at it")');
        };
        const call = async (column, field) => {
            const id = await page.getAttribute(`label:text-is("${column}")`, 'for');
            await page.selectOption(`#${id}`, field);
        };
        const columns = async () => {
            for (const [column, field] of [['Nr', 'idempotency_key'], ['Zeit', 'timestamp'], ['Kunde', 'customer_ref'], ['Ding', 'usage_product_ref'],
                ['Menge', 'quantity'], ['Notiz', '-']]) await call(column, field);
            await page.click('button:text("Look again")');
        };
        const page = await loggedIn(context);
        await choose();
        await page.waitForSelector('h2:text("Lines that are refused")');
        await columns();
        await page.waitForSelector('button:text("Import 3 events")');
        assert.match(await page.innerText('main'), /must be the reference of an existing customer/);
        assert.deepEqual(await quantities(), [1500], 'nothing is stored by looking');
        await page.click('button:text("Import 3 events")');
        await page.click('main >> text=The import');
        await page.waitForSelector(`h1:text("Import ${customer}.csv")`);
        assert.deepEqual((await quantities()).sort((a, b) => a - b), [10, 20, 30, 1500]);
        await page.click('text=Undo this import');
        await page.waitForSelector(`main a[href="/console/documents/${document}"]`);
        await page.click('button:text("Delete 3 events")');
        await page.waitForSelector('[role=status]');
        assert.match(await page.innerText('main'), /Undone/);
        assert.deepEqual(await quantities(), [1500]);
        await choose();
        await columns();
        await page.click('button:text("Import 3 events")');
        await page.waitForSelector('text=The import');
        assert.equal((await quantities()).length, 4, 'the same file counts again');
    },

    async 'billing is run after a look at what it would issue'(context, of) {
        await sell(`runs-${of.length}`, 'Runs Ltd');
        const page = await loggedIn(context);
        await page.click('nav.parts >> text=Billing runs');
        await page.click('main >> text=Run billing now');
        await page.waitForSelector('h2:text("Documents that would be issued")');
        const runs = (await api('GET', '/api/billing/runs/filter')).length;
        await page.click('button:text("Run billing")');
        await page.waitForSelector('[role=status]:text("Billing was run.")');
        assert.equal((await api('GET', '/api/billing/runs/filter')).length, runs + 1);
        await page.click('tbody a[href^="/console/documents/"] >> nth=0');
        await page.waitForSelector('.state[data-state="ISSUED"]');
        await page.click('nav.parts >> text=Home');
        await page.click('text=Contracts that failed in the last billing run');
        await page.waitForSelector('h1:text("Billing run")');
    },

    async 'a format is tried, mended where it is wrong, and saved'(context, of) {
        const page = await loggedIn(context);
        await page.click('nav.parts >> text=Formats');
        await page.click('main >> text=New');
        await page.fill('[name=format_name]', `Tried ${of}`);
        await page.fill('[name="mapping/timestamp"]', 'event.at');
        await page.fill('[name="mapping/customer_ref"]', 'event.customer');
        await page.fill('[name="mapping/usage_product_ref"]', '"api-calls"');
        await page.fill('[name="mapping/quantity"]', 'event.calls +');
        await page.click('button:text("Try")');
        await page.waitForSelector('.field:has([name="mapping/quantity"]) .wrong');
        assert.equal(await page.inputValue('[name="mapping/timestamp"]'), 'event.at');
        await page.fill('[name="mapping/quantity"]', 'event.calls * 2');
        await page.click('button:text("Try")');
        assert.match(await page.innerText('pre.mapped'), /"quantity": 24/);
        await page.click('button:text("Save")');
        await page.waitForSelector('[role=status]:text("It was made.")');
        await page.click('main >> text=Edit');
        assert.equal(await page.inputValue('[name="mapping/quantity"]'), 'event.calls * 2');
        await page.fill('[name="mapping/quantity"]', 'event.calls');
        await page.click('button:text("Save")');
        await page.waitForSelector('[role=status]:text("It was changed.")');
    },

    async 'a key is made, works, and works no more once it is deleted'(context, of) {
        const page = await loggedIn(context);
        await page.click('nav.parts >> text=API keys');
        await page.fill('[name=name]', `Key of ${of}`);
        await page.click('button:text("Make")');
        const [key, secret] = await page.locator('dd code').allInnerTexts();
        const body = JSON.stringify({ api_key: key, password: secret });
        const tried = () => fetch(`${service}/auth/login`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
        assert.equal((await tried()).status, 200);
        await page.click('text=All keys');
        const option = await page.locator('option', { hasText: key }).getAttribute('value');
        await page.selectOption('[name=api_key_ref]', option);
        await page.click('button:text("Delete")');
        await page.waitForSelector('[role=status]:text("The key was deleted.")');
        assert.equal((await tried()).status, 401);
    },

    async 'anything is found by its number, and a name that is a script is text'(context, of) {
        const document = await sell(`evil-${of.length}`, NAME);
        const { document_number: number } = await api('GET', `/api/documents/${document}`);
        const page = await loggedIn(context);
        await page.fill('[name=q]', number);
        await page.click('text=Search');
        await page.click(`main a:text-is("${number}")`);
        await page.waitForURL(`**/console/documents/${document}`);
        await page.click('.parties a[href^="/console/customers/"]');
        assert.equal(await page.innerText('h1'), NAME);
        if (of === 'with scripts') assert.equal(await page.evaluate(() => window.hacked), undefined);
    },
};

// What another's page can't do.
async function foreignPages(browser) {
    const document = await sell('foreign', 'Foreign Ltd');
    const html = `<form id="f" method="post" action="${service}/console/documents/${document}/void"></form>
        <iframe src="${service}/console"></iframe><script>document.getElementById('f').submit()</script>`;
    const evil = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end(html));
    await new Promise((listening) => evil.listen(0, '127.0.0.1', listening));
    const context = await browser.newContext();
    const page = await loggedIn(context);
    const refusals = [];
    page.on('response', (answer) => answer.request().method() === 'POST' && refusals.push(answer.status()));
    // Another name of the loopback is another site.
    await page.goto(`http://localhost:${evil.address().port}/`);
    await page.waitForURL(/void/, { timeout: 10_000 }).catch(() => {});
    assert.notEqual(await stateOf(document), 'VOID');
    assert.ok(refusals.every((status) => status === 403 || status === 303), refusals.join());
    const framed = await context.newPage();
    framed.on('console', () => {});
    await framed.setContent(`<iframe src="${service}/console"></iframe>`);
    await framed.waitForTimeout(500);
    const inside = framed.frames()[1];
    assert.equal(await inside?.$('nav.parts') ?? null, null, 'the console lets itself be framed');
    await context.close();
    evil.close();
}

// Every page: readable by everybody, in both colours, on both sizes.
async function everyPage(browser) {
    const first = async (page, prefix) => page.getAttribute(`main a[href^="${prefix}"]`, 'href');
    for (const [size, viewport] of Object.entries(SIZES)) {
        for (const colorScheme of ['light', 'dark']) {
            // axe is put into pages that let no script in.
            const context = await browser.newContext({ viewport, colorScheme, bypassCSP: true });
            const entry = await context.newPage();
            await entry.goto(`${service}/console/log-in`);
            await look(entry, 'log-in', size, colorScheme);
            await entry.close();
            const page = await loggedIn(context);
            await page.goto(`${service}/console/documents`);
            const pages = { documents: '/console/documents', document: await first(page, '/console/documents/') };
            pages.contract = await first(page, '/console/contracts/');
            pages.customer = await first(page, '/console/customers/');
            await page.goto(`${service}/console/events`);
            pages.event = await first(page, '/console/events/');
            const parts = await page.$$eval('nav.parts a', (links) => links.map((link) => link.getAttribute('href')));
            for (const part of ['imports', 'billing-runs', 'formats']) {
                await page.goto(`${service}/console/${part}`);
                pages[`one-of-${part}`] = await first(page, `/console/${part}/`);
            }
            const [undoable] = (await api('GET', '/api/usage/imports/filter')).filter(({ state }) => state !== 'UNDONE');
            pages.undo = `/console/imports/${undoable.import_ref}/undo`;
            Object.assign(pages, { 'import-form': '/console/new/imports', 'run-form': '/console/new/billing-runs', 'format-form': '/console/new/formats' });
            for (const part of parts) pages[part.split('/')[2] ?? 'home'] = part;
            Object.assign(pages, { pricing: '/console/pricings/api-plan', search: '/console/search?q=api', form: '/console/new/customers', missing: '/console/nothing' });
            for (const [name, path] of Object.entries(pages)) {
                const answer = await page.goto(service + path);
                const { length } = await answer.body();
                assert.ok(length < 100 * 1024, `${name} has ${length} bytes`);
                await page.$$eval('.sheet details', (all) => all.forEach((one) => (one.open = true)));
                await look(page, name, size, colorScheme);
            }
            await page.goto(`${service}/console/new/imports`);
            await page.fill('[name=pasted]', 'Zeit;Kunde;Menge\n2026-01-20T10:15:30Z;nobody;7\n');
            await page.click('button:text("Look at it")');
            await page.waitForSelector('h2:text("Columns")');
            await look(page, 'import-check', size, colorScheme);
            await page.goto(`${service}/console/new/formats`);
            await page.fill('[name=sample]', '{"a": ');
            await page.click('button:text("Try")');
            await page.waitForSelector('.wrong');
            await look(page, 'format-wrong', size, colorScheme);
            await context.close();
        }
    }
}

async function look(page, name, size, colorScheme) {
    if (pictures) await page.screenshot({ path: join(pictures, `${name}-${size}-${colorScheme}.png`), fullPage: true });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run());
    const grave = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    const told = grave.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
    assert.deepEqual(told, [], `${name}, ${size}, ${colorScheme}`);
    const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(tooWide <= 0, `${name}, ${size}: ${tooWide} pixels too wide`);
}

if (pictures) mkdirSync(pictures, { recursive: true });
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
try {
    for (const [of, javaScriptEnabled] of [['with scripts', true], ['without scripts', false]]) {
        for (const [name, journey] of Object.entries(journeys)) {
            const context = await browser.newContext({ javaScriptEnabled });
            context.setDefaultTimeout(20_000);
            await journey(context, of).catch((error) => {
                throw new Error(`${name}, ${of}`, { cause: error });
            });
            await context.close();
            console.log(`ok: ${name}, ${of}`);
        }
    }
    await foreignPages(browser);
    console.log('ok: what another page can do');
    await everyPage(browser);
    console.log('ok: every page, light and dark, on a desktop and a phone');
} finally {
    await browser.close();
}
