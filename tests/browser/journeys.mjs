// Tests of the console in a real browser: `node journeys.mjs SERVICE CHROMIUM [PICTURES]`.
//
// Environment variables:
// - EMAIL and PASSWORD: the email address and password of the administrator
// - TOKEN: a bearer token
// - EMPTY: four services with the same administrator and without data, separated by commas
// - SANDBOX: a sandbox with the same administrator and the sample data
// - ONLY: if set, the script runs only the journeys whose names contain this text
// - PAGES: if set, the script also checks every page, in light and dark, on a desktop and a phone
//
// The usual tasks run with and without scripts, on a desktop and on a phone. For each of them, the script prints the number of
// clicks and of filled fields. If a journey fails, the script prints the reason and exits with 1. If PICTURES names a directory,
// the script saves a screenshot of every page there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { CountedPage, MOST, countActions, ended, tasks } from './tasks.mjs';
import { amountOf, api, chromium, executablePath, faults, first, loggedIn, logIn, look, open, pictures, seats, sell, service, stateOf } from './tools.mjs';

const { EMAIL: email, PASSWORD: password, TOKEN: token, EMPTY: empty, SANDBOX: sandbox } = process.env;
// Runs only the journeys whose names contain this text.
const only = process.env.ONLY ?? '';

const SIZES = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };
const NAME = `<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">{{7*7}}"'`;

// Returns the code of a base32 secret, a number of 30-second steps from now (RFC 6238).
function code(secret, steps) {
    const bits = [...secret].map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')).join('');
    const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
    const counter = Buffer.alloc(8);
    counter.writeBigInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
    const tag = createHmac('sha1', key).update(counter).digest();
    const number = tag.readUInt32BE(tag[19] & 0xf) & 0x7fffffff;
    return String(number % 1_000_000).padStart(6, '0');
}

// User journeys, in a browser with scripts and in a browser without scripts.
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
        await open(page, 'Contracts');
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
        // The fixed line comes first and has no events.
        await page.click('summary:text("Calculation") >> nth=-1');
        await page.click('text=Show usage events');
        await page.click('tbody tr td:first-child a');
        await page.waitForSelector('h1:text("Usage event")');
        await page.click('dd a[href^="/console/documents/"]');
        await page.waitForURL(`**/console/documents/${document}`);
    },

    async 'a document is issued, paid and its payment reversed, and each says so'(context, of) {
        const document = await sell(`pays-${of.length}`, 'Pays Ltd');
        const page = await loggedIn(context);
        await page.goto(`${service}/console/documents/${document}`);
        await page.click('main >> text=Issue document');
        const total = await page.getAttribute(amountOf('Would be issued'), 'value');
        assert.equal(await stateOf(document), 'DRAFT');
        await page.click('button:text("Issue document")');
        await page.waitForSelector('[role=status]:text("Document issued.")');
        const issued = await api('GET', `/api/documents/${document}`);
        assert.deepEqual([issued.state, issued.total], ['ISSUED', Number(total)]);
        await page.click('main >> text=Record payment');
        const due = await page.inputValue('[name=amount]');
        await page.fill('[name=amount]', 'ten');
        await page.click('button:not(.first):text("Preview")');
        await page.waitForSelector('.field:has([name=amount]) .wrong');
        await page.fill('[name=amount]', due);
        await page.click('button:not(.first):text("Preview")');
        await page.click('button:text("Edit")');
        assert.equal(await page.inputValue('[name=amount]'), due);
        await page.click('button:not(.first):text("Preview")');
        assert.equal(await stateOf(document), 'ISSUED');
        await page.click('button:text("Record payment")');
        await page.waitForSelector('[role=status]:text("Payment of")');
        assert.match(await page.innerText('[role=status]'), /^Payment of 109\.?0* EUR recorded\.$/);
        assert.equal(await stateOf(document), 'PAID');
        await page.click('main a:text-is("Reverse")');
        await page.fill('[name=reason]', 'bounced');
        await page.click('button:not(.first):text("Preview")');
        await page.click('button:text("Reverse payment")');
        await page.waitForSelector('[role=status]:text("Payment reversed.")');
        assert.equal(await stateOf(document), 'ISSUED');
    },

    async 'a customer is made, and a wrong field keeps what was said'(context, of) {
        const page = await loggedIn(context);
        await open(page, 'Customers');
        await page.click('main a:text-is("New customer")');
        await page.fill('[name=name]', 'Typed Ltd');
        await page.fill('[name=customer_ref]', `typed-${of.length}`);
        await page.selectOption('[name="@tax"]', 'OTHER');
        await page.fill('[name=tax]', 'nineteen');
        await page.click('button:not(.first):text("Create")');
        await page.waitForSelector('.field:has([name=tax]) .wrong');
        assert.equal(await page.inputValue('[name=name]'), 'Typed Ltd');
        await page.fill('[name=tax]', '19');
        await page.click('button:not(.first):text("Create")');
        await page.waitForSelector('[role=status]:text("Customer created.")');
        await page.click('main a:text-is("Edit")');
        await page.fill('[name=name]', 'Typed Limited');
        await page.click('button:not(.first):text("Preview")');
        await page.click('button:text-is("Save")');
        await page.waitForSelector('[role=status]:text("Customer updated.")');
        await page.waitForSelector('h1:text("Typed Limited")');
    },

    async 'a pricing and a contract are made, edited and cancelled, and what is shown first is what comes'(context, of) {
        const pricing = `typed-plan-${of.length}`;
        const customer = `agrees-${of.length}`;
        await api('POST', '/api/customers/', { customer_ref: customer, name: 'Agrees Ltd' });
        const page = await loggedIn(context);
        const press = (name) => page.click(`form.stack button:not(.first):text-is("${name}")`);
        const say = (name, value) => page.fill(`[name="${name}"]`, value);
        const done = () => page.waitForSelector('[role=status]');
        const shown = (effect) => page.getAttribute(amountOf(effect), 'value');

        await page.goto(`${service}/console/new/pricings`);
        await say('name', 'Typed plan');
        await say('currency', 'EUR');
        await say('line_items/0/price/amount', '49');
        await page.selectOption('[name="line_items/2/usage_product_ref"]', 'api-calls');
        await page.selectOption('[name="line_items/2/price/model"]', 'GRADUATED');
        const tier = (place, field) => `line_items/2/price/tiers/${place}/${field}`;
        if (!(await page.isVisible(`[name="${tier(0, 'up_to')}"]`))) await page.click('[id="part-line_items/2"] > details.others > summary');
        await say(tier(0, 'up_to'), '1000');
        await say(tier(0, 'unit_price'), '0.05');
        await page.click('[value="+line_items/2/price/tiers"]');
        await page.waitForSelector(`[name="${tier(2, 'unit_price')}"]`);
        assert.equal(await page.inputValue(`[name="${tier(0, 'unit_price')}"]`), '0.05');
        await page.click('[value="-line_items/2/price/tiers/2"]');
        await page.waitForSelector(`[name="${tier(2, 'unit_price')}"]`, { state: 'detached' });
        await say(tier(1, 'unit_price'), 'cheap');
        if (!(await page.isVisible('[name=product_pricing_ref]'))) await page.click('form.stack > details.more > summary');
        await say('product_pricing_ref', pricing);
        await press('Preview');
        // The line item of the seats is empty, so it is left out.
        const meter = (field) => `line_items/1/price/tiers/${field}`;
        await page.waitForSelector(`.field:has([name="${meter('1/unit_price')}"]) .wrong`);
        await say(meter('1/unit_price'), '0.04');
        await press('Preview');
        await page.waitForSelector('p:text("Nothing is saved yet")');
        await page.click('.actions button:text-is("Create")');
        await done();
        await page.waitForURL(`**/console/pricings/${pricing}?**`);

        const today = new Date().toISOString().slice(0, 10);
        await page.goto(`${service}/console/new/contracts`);
        await page.click(`.choice a[href*="customer_ref=${customer}&"]`);
        await page.check(`[name=pricing][value="${pricing}"]`);
        await page.click('button:text-is("Continue")');
        await say('start', `${today.slice(0, 8)}01`);
        await page.check('[name=term][value=open]');
        await page.click('button:text-is("Continue")');
        await page.waitForSelector('h2:text-is("Preview")');
        const planned = await shown('Upcoming document');
        assert.deepEqual(await api('GET', `/api/contracts/search?customer_ref=${customer}`), []);
        // With scripts, the preview is loaded again beside the form.
        await page.waitForLoadState('networkidle');
        await page.click('button:text-is("Create contract")');
        await done();
        const [{ contract_ref: contract }] = await api('GET', `/api/contracts/search?customer_ref=${customer}`);
        const [current] = await api('GET', `/api/contracts/invoices/current/${contract}`);
        assert.equal(Number(planned), current.total);

        const event = { timestamp: new Date().toISOString(), customer_ref: customer, usage_product_ref: 'api-calls', quantity: 1500 };
        const { related_document_ref: draft } = await api('POST', '/api/usage/event', event);
        await page.goto(`${service}/console/contracts/${contract}`);
        await page.click('main a:text-is("Advanced")');
        await page.waitForSelector('h1:text("Edit contract")');
        await page.goto(`${service}/console/contracts/${contract}`);
        await page.click('main a:text-is("Change discount")');
        await say('discount', 'ten');
        await press('Preview');
        await page.waitForSelector('.field:has([name=discount]) .wrong');
        await say('discount', '10');
        await page.check('[name=start][value=current]');
        await press('Preview');
        const edited = await shown('Draft that would change');
        await page.click('button:text-is("Change discount")');
        await done();
        assert.equal((await api('GET', `/api/documents/${draft}`)).total, Number(edited));

        await page.click('main a:text-is("Cancel contract")');
        await page.check('[name=end][value=today]');
        await press('Preview');
        const last = await shown('Would be issued');
        assert.equal(await stateOf(draft), 'DRAFT');
        await page.click('button:text-is("Cancel contract")');
        await done();
        const { state, total } = await api('GET', `/api/documents/${draft}`);
        assert.deepEqual([state, total], ['ISSUED', Number(last)]);
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
            await open(page, 'Imports');
            await page.click('main >> text=Import file');
            await page.setInputFiles('[name=file]', { name: `${customer}.csv`, mimeType: 'text/csv', buffer: Buffer.from(file) });
            await page.click('button:text("Preview")');
            await page.waitForSelector('label:text("Which column is the usage product?")');
            await page.selectOption('[name=usage_product_ref]', 'Ding');
            await page.click('button:text("Continue")');
        };
        const call = async (column, field) => {
            const id = await page.getAttribute(`label:text-is("${column}")`, 'for');
            await page.selectOption(`#${id}`, field);
        };
        const columns = async () => {
            for (const [column, field] of [['Nr', 'idempotency_key'], ['Zeit', 'timestamp'], ['Kunde', 'customer_ref'], ['Ding', 'usage_product_ref'],
                ['Menge', 'quantity'], ['Notiz', '-']]) await call(column, field);
            await page.click('button:text("Update preview")');
        };
        const page = await loggedIn(context);
        await choose();
        await page.waitForSelector('h2:text("Rejected lines")');
        await columns();
        await page.waitForSelector('button:text("Import 3 events")');
        assert.match(await page.innerText('main'), /must be the reference of an existing customer/);
        assert.deepEqual(await quantities(), [1500], 'nothing is stored by looking');
        await page.click('button:text("Import 3 events")');
        await page.click('main >> text=Show import');
        await page.waitForSelector(`h1:text("Import ${customer}.csv")`);
        assert.deepEqual((await quantities()).sort((a, b) => a - b), [10, 20, 30, 1500]);
        await page.click('text=Undo import');
        await page.waitForSelector(`main a[href="/console/documents/${document}"]`);
        await page.click('button:text("Delete 3 events")');
        await page.waitForSelector('[role=status]');
        assert.match(await page.innerText('main'), /Events deleted/);
        assert.match(await page.innerText('section:has(h2:text("Documents changed by the undo"))'), /Before[^]*After[^]*Total/);
        assert.deepEqual(await quantities(), [1500]);
        await choose();
        await columns();
        await page.click('button:text("Import 3 events")');
        await page.waitForSelector('text=Show import');
        assert.equal((await quantities()).length, 4, 'the same file counts again');
    },

    async 'billing is run after a look at what it would issue'(context, of) {
        await sell(`runs-${of.length}`, 'Runs Ltd');
        const page = await loggedIn(context);
        await open(page, 'Billing runs');
        await page.click('main a:text-is("Run billing")');
        await page.waitForSelector('h2:text("Documents that would be issued")');
        const runs = (await api('GET', '/api/billing/runs/filter')).length;
        await page.click('button:text("Run billing")');
        await page.waitForSelector('[role=status]:text("Billing run finished.")');
        assert.equal((await api('GET', '/api/billing/runs/filter')).length, runs + 1);
        await page.click('section:has(h2:text("Documents issued")) tbody a[href^="/console/documents/"] >> nth=0');
        await page.waitForSelector('.state[data-state="ISSUED"]');
        await open(page, 'Home');
        await page.click('main a:text-is("Last billing run")');
        await page.waitForSelector('h1:text("Billing run")');
    },

    async 'a format is tried, mended where it is wrong, and saved'(context, of) {
        const page = await loggedIn(context);
        await open(page, 'Usage formats');
        await page.click('main a:text-is("New usage format")');
        await page.fill('[name=format_name]', `Tried ${of}`);
        await page.fill('[name="mapping/timestamp"]', 'event.at');
        await page.fill('[name="mapping/customer_ref"]', 'event.customer');
        await page.fill('[name="mapping/usage_product_ref"]', '"api-calls"');
        await page.fill('[name="mapping/quantity"]', 'event.calls +');
        await page.click('button:text("Test")');
        await page.waitForSelector('.field:has([name="mapping/quantity"]) .wrong');
        assert.equal(await page.inputValue('[name="mapping/timestamp"]'), 'event.at');
        await page.fill('[name="mapping/quantity"]', 'event.calls * 2');
        await page.click('button:text("Test")');
        assert.match(await page.innerText('pre.mapped'), /"quantity": 24/);
        await page.click('button:text("Save")');
        await page.waitForSelector('[role=status]');
        await page.click('main a:text-is("Edit")');
        assert.equal(await page.inputValue('[name="mapping/quantity"]'), 'event.calls * 2');
        await page.fill('[name="mapping/quantity"]', 'event.calls');
        await page.click('button:text("Save")');
        await page.waitForSelector('[role=status]:text("Changes saved.")');
    },

    async 'key life: a key is made for what it is for, works, gives way to a successor, and works no more once it is deleted'(context, of) {
        const page = await loggedIn(context);
        await open(page, 'API keys');
        await page.fill('[name=name]', `Key of ${of}`);
        for (const scope of ['contracts:write', 'catalog:write', 'documents:write', 'read', 'usage:write']) await page.uncheck(`[value="${scope}"]`);
        await page.click('button:text("Create key")');
        await page.waitForSelector('.choices .wrong');
        assert.equal(await page.inputValue('[name=name]'), `Key of ${of}`);
        await page.check('[value="read"]');
        await page.click('button:text("Create key")');
        const tried = ([api_key, password]) => fetch(`${service}/auth/login`, {
            method: 'POST',
            headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify({ api_key, password }),
        });
        const first = await page.locator('dd code').allInnerTexts();
        const token = await (await tried(first)).json();
        const asked = (method, path) => fetch(service + path, { method, headers: { Authorization: `Bearer ${token}` } });
        assert.equal((await asked('GET', '/api/customers/filter')).status, 200);
        assert.equal((await asked('POST', '/api/billing/run')).status, 403);
        await page.click('text=All API keys');
        const row = (key) => page.locator('tbody tr', { hasText: key });
        await row(first[0]).locator('summary').click();
        await row(first[0]).locator('select').selectOption('168');
        await row(first[0]).locator('button:text("Rotate key")').click();
        const second = await page.locator('dd code').allInnerTexts();
        assert.deepEqual([(await tried(first)).status, (await tried(second)).status], [200, 200]);
        await page.click('text=All API keys');
        assert.match(await row(second[0]).innerText(), new RegExp(`Key of ${of}`));
        await row(first[0]).locator('summary').click();
        assert.match(await row(first[0]).innerText(), /This key has been rotated/);
        await row(first[0]).locator('button:text("Delete key")').click();
        await page.waitForSelector('[role=status]:text("API key deleted.")');
        assert.deepEqual([(await tried(first)).status, (await tried(second)).status], [401, 200]);
    },

    async 'second factor: somebody is invited, sets a password of their own, then a second factor, and loses the device'(context, of) {
        const owner = await loggedIn(context);
        const invited = `invited-${of.length}@example.com`;
        await open(owner, 'Team');
        await owner.fill('[name=email]', email);
        await owner.click('button:text("Invite administrator")');
        await owner.waitForSelector('.field .wrong');
        await owner.fill('[name=email]', invited);
        await owner.selectOption('#role', 'finance');
        await owner.click('button:text("Invite administrator")');
        const given = await owner.innerText('dd code');

        const theirs = await context.browser().newContext({ javaScriptEnabled: of === 'with scripts' });
        const page = await theirs.newPage();
        page.setDefaultTimeout(20_000);
        await page.goto(`${service}/console/documents?state=DRAFT`);
        const begin = async (secret) => {
            await page.fill('[name=email]', invited);
            await page.fill('[name=password]', secret);
            await page.click('main button');
        };
        await begin(given);
        await page.fill('[name=new_password]', 'short');
        await page.click('main button');
        assert.match(await page.innerText('[role=alert]'), /12 to 72 bytes/);
        await page.fill('[name=new_password]', 'a pass phrase of their own');
        await page.click('main button');
        await page.waitForURL('**/console/documents?state=DRAFT');
        assert.equal(await page.locator('nav.parts >> text=Team').count(), 0);
        assert.equal((await page.goto(`${service}/console/team`)).status(), 403);

        await page.click(`text=${invited}`);
        await page.click('button:text("Set up second factor")');
        await page.waitForSelector('.qr svg');
        const secret = (await page.innerText('ol code')).replaceAll(' ', '');
        await page.fill('[name=code]', '000000');
        await page.click('button:text("Confirm")');
        await page.waitForSelector('.field .wrong');
        assert.equal((await page.innerText('ol code')).replaceAll(' ', ''), secret);
        await page.fill('[name=code]', code(secret, -1));
        await page.click('button:text("Confirm")');
        await page.waitForSelector('.codes code');
        const recovery = await page.locator('.codes code').allInnerTexts();
        assert.equal(recovery.length, 10);
        await page.click('text=I have saved the codes');

        const again = async () => {
            await page.click('text=Log out');
            await page.goto(`${service}/console/contracts`);
            await begin('a pass phrase of their own');
            await page.waitForSelector('[name=code]');
            assert.ok(!(await page.content()).includes('a pass phrase of their own'), 'the password stands in the page');
        };
        await again();
        await page.fill('[name=code]', '000000');
        await page.click('main button');
        await page.waitForSelector('[role=alert]');
        await page.fill('[name=code]', code(secret, 1));
        await page.click('main button');
        await page.waitForURL('**/console/contracts');
        await again();
        await page.fill('[name=code]', recovery[0]);
        await page.click('main button');
        await page.waitForURL('**/console/contracts');
        await page.click(`text=${invited}`);
        assert.match(await page.innerText('main'), /Recovery codes left: 9/);

        await owner.click('text=Back to team');
        const row = owner.locator('tbody tr', { hasText: invited });
        await row.locator('summary').click();
        await row.locator('button:text("Disable")').click();
        await owner.waitForSelector('[role=status]:text("Administrator disabled.")');
        await page.goto(`${service}/console`);
        await page.waitForURL('**/console/log-in**');
        await theirs.close();
    },

    async 'the explorer draws what the summary says, and a bar opens into events'(context, of) {
        const customer = `uses-${of.length}`;
        await sell(customer, 'Uses Ltd');
        const page = await loggedIn(context);
        await page.goto(`${service}/console/usage?customer_ref=${customer}`);
        const [row, ...others] = await api('GET', `/api/usage/summary?interval=day&group_by=usage_product_ref&customer_ref=${customer}`);
        assert.equal(others.length, 0);
        const bars = page.locator('.chart .bar');
        assert.equal(await bars.count(), 1);
        const told = await page.locator('.chart a title').textContent();
        assert.equal(told, `${row.from.slice(0, 10)}: 1,500 calls, events: 1`);
        // The height of the only bar matches the axis.
        const [high, top] = [await bars.getAttribute('height'), await page.locator('.chart .grid').last().getAttribute('y2')];
        assert.equal(Number(await bars.getAttribute('y')), Number(top));
        assert.ok(Number(high) > 100);
        await page.locator('.chart .over').click();
        await page.waitForURL(`**/console/usage?**from=${row.from.slice(0, 10)}&to=${row.from.slice(0, 10)}`);
        await page.locator('.chart .over').click();
        await page.waitForURL('**/console/events?**');
        await page.click('tbody tr td:first-child a');
        await page.click('dd a[href^="/console/documents/"]');
        await page.waitForSelector('.sheet');
    },

    async 'a price is drawn, and says what a quantity costs'(context) {
        const page = await loggedIn(context);
        await page.goto(`${service}/console/pricings/api-plan`);
        await page.fill('[name=quantity]', '1500');
        await page.click('button:text("Calculate price")');
        assert.match(await page.innerText('[role=status]'), /at 1,500 → 60\.00 EUR/);
        await page.waitForSelector('.chart circle', { state: 'attached' });
        await page.fill('[name=quantity]', 'many');
        await page.click('button:text("Calculate price")');
        await page.waitForSelector('.wrong');
        assert.equal(await page.inputValue('[name=quantity]'), 'many');
    },

    async 'a call of the reference is tried with a token, and as a dry run it stores nothing'(context, of) {
        const document = await sell(`tries-${of.length}`, 'Tries Ltd');
        const page = await context.newPage();
        await page.goto(`${service}/docs/operations/issue_document`);
        // Without scripts, the page shows the call as a command.
        assert.equal(await page.isVisible('#request'), of === 'with scripts');
        if (of !== 'with scripts') return;
        await page.fill('[data-in=path]', document);
        await page.fill('#token', token);
        await page.check('#dry-run');
        await page.click('button:text-is("Send request")');
        await page.waitForSelector('#status:text("200")');
        assert.match(await page.innerText('#content'), /"dry_run": true/);
        assert.equal(await stateOf(document), 'DRAFT');
    },

    async 'anything is found by its number, and a name that is a script is text'(context, of) {
        const document = await sell(`evil-${of.length}`, NAME);
        const { document_number: number } = await api('GET', `/api/documents/${document}`);
        const page = await loggedIn(context);
        await page.fill('[name=q]', number);
        await page.click('form.search button');
        await page.click(`main a:text-is("${number}")`);
        await page.waitForURL(`**/console/documents/${document}`);
        await page.click('.parties a[href^="/console/customers/"]');
        assert.equal(await page.innerText('h1'), NAME);
        if (of === 'with scripts') assert.equal(await page.evaluate(() => window.hacked), undefined);
    },
};

// Sets up a service without data.
async function firstRun(context, of, from, taken) {
    const page = await context.newPage();
    const user = new CountedPage(page, of);
    const photo = async (name) => taken && (await page.screenshot({ path: join(taken, `start-${name}-desktop-light.png`), fullPage: true }));
    await page.goto(`${from}/console`);
    await logIn(page);
    await page.waitForURL('**/console/start');
    const step = async (fields) => {
        await user.fillAll(fields);
        await user.press('Save');
    };
    // This mistake is not part of the task, so it is not counted.
    await page.fill('[name=name]', 'We');
    await page.fill('[name=vat_id]', '136695976');
    for (const field of ['legal_name', 'address/line1', 'address/city']) await page.fill(`[name="${field}"]`, 'x');
    await page.selectOption('[name="address/country_code"]', 'DE');
    await page.click('main button:text-is("Save")');
    await page.waitForSelector('.field:has([name=vat_id]) .wrong');
    assert.equal(await page.inputValue('[name=name]'), 'We');
    await photo('wrong');
    await user.start();
    await step({
        name: 'We', legal_name: 'We GmbH', 'address/line1': 'Hauptstr. 1', 'address/city': 'Berlin', 'address/country_code': 'DE',
        vat_id: 'DE136695976',
    });
    await page.waitForSelector('form[action$="/usage-product"]');
    await user.says('Entity saved.');
    await user.end('first steps: entity');
    await step({ name: 'API calls', unit: 'call' });
    await page.waitForSelector('form[action$="/pricing"]');
    await user.end('first steps: usage product');
    await step({ name: 'Plan', currency: 'EUR', 'line_items/0/price/unit_price': '0.05', 'line_items/1/price/amount': '49' });
    await page.waitForSelector('form[action$="/customer"]');
    await user.end('first steps: pricing');
    await step({
        name: 'Acme', legal_name: 'Acme Ltd', 'billing_address/line1': 'Ringstr. 2', 'billing_address/city': 'Köln',
        'billing_address/country_code': 'DE',
    });
    await page.waitForSelector('form[action$="/contract"]');
    await user.end('first steps: customer');
    await step({});
    await page.waitForSelector('button:text("Create key and show command")');
    await user.end('first steps: contract');
    await user.press('Create key and show command');
    const call = await page.innerText('#call');
    await photo('call');
    await user.end('first steps: key and first call');
    await user.link('Wait for the event');
    await page.waitForSelector('h1:text("Waiting")');
    await photo('wait');
    const { related_document_numbers: number } = JSON.parse(execFileSync('sh', ['-c', call], { encoding: 'utf8' }));
    // References are made from names, and the line items have names.
    assert.match(call, /"customer_ref":"acme","usage_product_ref":"api-calls"/);
    // The page reloads by itself.
    await page.waitForSelector('h1:text("First invoice")');
    assert.match(await page.innerText('main'), new RegExp(`${number}[^]*Monthly fee[^]*124\\.00|${number}[^]*API calls[^]*124\\.00`));
    await photo('invoice');
    await user.end('first steps: first invoice');
    await user.click(`main a:text-is("${number}")`);
    await user.click('summary:text("Calculation") >> nth=0');
    await user.end('first steps: calculation of a line');
    await page.goto(`${from}/docs`);
    await user.start();
    await user.fill('q', 'record usage event');
    await user.click('header button:text-is("Search")');
    await user.click('main a[href^="/docs/operations/record_event"]');
    await page.waitForSelector('h1');
    await user.end('first steps: operation in the reference');
    await page.goto(`${from}/console/account`);
    await user.start();
    await user.open('Team');
    await user.invite('colleague@example.com');
    await user.end('first steps: invited colleague');
    await page.goto(`${from}/console`);
    await page.waitForSelector('h1:text("Home")');
}

// Checks that a page of another site can neither submit a console form nor show the console in a frame.
async function foreignPages(browser) {
    const document = await sell('foreign', 'Foreign Ltd');
    const html = `<form id="f" method="post" action="${service}/console/do/void/${document}?confirmed=yes"></form>
        <iframe src="${service}/console"></iframe><script>document.getElementById('f').submit()</script>`;
    const evil = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end(html));
    await new Promise((listening) => evil.listen(0, '127.0.0.1', listening));
    const context = await browser.newContext();
    const page = await loggedIn(context);
    const refusals = [];
    page.on('response', (answer) => answer.request().method() === 'POST' && refusals.push(answer.status()));
    // Another name of the loopback host is another site.
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

// Returns the reference of an issued document with an amount due.
async function issuedDocument() {
    const [{ document_ref: document }] = await api('GET', '/api/documents/filter?has_amount_due=true&state=ISSUED&pageSize=1');
    return document;
}

// Checks that the steps of an import, and the pages of prices by attributes, are accessible.
async function importsAndPrices(browser) {
    const counted = (line_item_id, counts) => ({ line_item_id, kind: 'USAGE', usage_product_ref: 'api-calls', price: { model: 'PER_UNIT', unit_price: '0.000002' }, ...counts });
    const prices = [counted('large', { where: { model: ['large-1', 'large-2'], kind: ['input'] } }), counted('other', { rest: true })];
    await api('POST', '/api/pricings/', { product_pricing_ref: 'models', name: 'Models', currency: 'EUR', line_items: prices });
    const mapping = { timestamp: 'event.at', customer_ref: 'event.who', usage_product_ref: '"api-calls"', quantity: 'to_decimal(event.n)' };
    await api('POST', '/api/usage/formats/', { format_name: 'Gateway', mapping });
    const places = { 'price-table': 'models?quantity=1500', 'price-row': 'models/add?usage_product_ref=api-calls&label%3Amodel=huge-1', 'price-row-first': 'api-plan/add?usage_product_ref=api-calls' };
    for (const [size, viewport] of Object.entries(SIZES)) {
        for (const colorScheme of ['light', 'dark']) {
            const context = await browser.newContext({ viewport, colorScheme, bypassCSP: true });
            context.setDefaultTimeout(20_000);
            const page = await loggedIn(context);
            for (const [name, path] of Object.entries(places)) {
                await page.goto(`${service}/console/pricings/${path}`);
                await look(page, name, size, colorScheme);
            }
            await page.fill('[name="new/key"]', 'model');
            await page.fill('[name="new/values"]', 'large');
            await page.fill('[name="price/unit_price"]', 'cheap');
            await page.click('.buttons button:text-is("Add price")');
            await page.waitForSelector('.wrong');
            await look(page, 'price-row-wrong', size, colorScheme);
            await page.goto(`${service}/console/new/imports`);
            await page.fill('[name=pasted]', 'Zeit;Kunde;Menge\n2026-01-20T10:15:30Z;nobody;7\n');
            await page.click('button:text("Preview")');
            await look(page, 'import-question', size, colorScheme);
            await page.click('button:text("Continue")');
            await page.waitForSelector('.wrong:text("enter one usage product for every line")');
            await look(page, 'import-question-again', size, colorScheme);
            await page.fill('[name="every/usage_product_ref"]', 'api-calls');
            await page.click('button:text("Continue")');
            await page.waitForSelector('h2:text("Columns")');
            await look(page, 'import-check', size, colorScheme);
            await page.goto(`${service}/console/new/imports`);
            await page.selectOption('[name=format_name]', 'Gateway');
            await page.waitForSelector('[data-result] code:text-is("who")');
            const buffer = Buffer.from(`at,payer,n\n${new Date().toISOString()},nobody,7\n`);
            await page.setInputFiles('[name=file]', { name: 'gateway.csv', mimeType: 'text/csv', buffer });
            await page.waitForSelector('[data-result] tr:has(code:text-is("who")) td:text-is("Not found")');
            await page.waitForSelector('[data-result] tr:has(code:text-is("n")) td:has-text("n: 7")');
            await look(page, 'import-fields', size, colorScheme);
            await page.click('button:text("Preview")');
            await page.waitForSelector('label:text("Which column is the field who?")');
            await look(page, 'import-format-question', size, colorScheme);
            await context.close();
        }
    }
}

// Checks that every page is accessible, in both color schemes and at both sizes.
async function everyPage(browser) {
    for (const [size, viewport] of Object.entries(SIZES)) {
        for (const colorScheme of ['light', 'dark']) {
            // The content security policy of the pages blocks scripts, but the check must inject axe.
            const context = await browser.newContext({ viewport, colorScheme, bypassCSP: true });
            const entry = await context.newPage();
            await entry.goto(`${service}/console/log-in`);
            await look(entry, 'log-in', size, colorScheme);
            await entry.close();
            const page = await loggedIn(context);
            await page.goto(`${service}/console/documents?columns=document_number&columns=contract_number&columns=customer.customer_name`);
            const pages = { documents: '/console/documents', document: await first(page, '/console/documents/') };
            pages.contract = await first(page, '/console/contracts/');
            pages.customer = await first(page, '/console/customers/');
            await page.goto(`${service}/console/events`);
            pages.event = await first(page, '/console/events/');
            pages.editContract = pages.contract.replace('/console/', '/console/edit/');
            pages['preview-issue'] = pages.document.replace('/documents/', '/do/issue/');
            for (const task of ['seats', 'price', 'price?target=0%2Fcalls', 'discount', 'end', 'invoicing', 'cancel', 'add']) {
                pages[`contract-${task.replace(/\?.*/, '-of-calls')}`] = `${pages.contract}/${task}`;
            }
            pages.charge = pages.contract.replace('/contracts/', '/do/charge/');
            pages.pay = `/console/do/pay/${await issuedDocument()}`;
            pages.statement = `${pages.customer}/statement`;
            pages.editCustomer = pages.customer.replace('/console/', '/console/edit/');
            const customer = pages.customer.split('/').pop();
            for (const step of ['pricings', 'term', 'quantities']) {
                pages[`newContract-${step}`] = `/console/new/contracts?customer_ref=${customer}&pricing=api-plan&step=${step}`;
            }
            Object.assign(pages, {
                'newPricing-advanced': '/console/new/pricings?advanced=yes', 'newContract-advanced': '/console/new/contracts?advanced=yes',
                editPricing: '/console/edit/pricings/api-plan', months: '/console/sums/months', docs: '/docs',
                'docs-search': '/docs/search?q=payment', 'docs-group': '/docs/groups/documents',
                'docs-operation': '/docs/operations/record_payment', 'docs-schemas': '/docs/schemas', 'docs-schema': '/docs/schemas/Document',
            });
            const parts = await page.$$eval('nav.parts a:not(.tab)', (links) => links.map((link) => link.getAttribute('href')));
            for (const part of ['imports', 'billing-runs', 'formats', 'entities', 'usage-products']) {
                await page.goto(`${service}/console/${part}`);
                pages[`one-of-${part}`] = await first(page, `/console/${part}/`);
            }
            const [undoable] = (await api('GET', '/api/usage/imports/filter')).filter(({ state }) => state !== 'UNDONE');
            pages.undo = `/console/imports/${undoable.import_ref}/undo`;
            Object.assign(pages, { role: '/console/roles/finance', logo: `${pages['one-of-entities']}/logo` });
            Object.assign(pages, { 'import-form': '/console/new/imports', 'run-form': '/console/new/billing-runs', 'format-form': '/console/new/formats' });
            for (const part of ['entities', 'usage-products', 'bank-accounts', 'webhooks']) pages[`new-${part}`] = `/console/new/${part}`;
            for (const part of parts) pages[part.split('/')[2] ?? 'home'] = part;
            Object.assign(pages, { pricing: '/console/pricings/api-plan?quantity=1500', start: '/console/start', wait: '/console/start/wait?paused=true',
                day: `/console/usage?from=${new Date().toISOString().slice(0, 10)}`, search: '/console/search?q=api', form: '/console/new/customers', newPricing: '/console/new/pricings', newContract: '/console/new/contracts', account: '/console/account', missing: '/console/nothing' });
            for (const [name, path] of Object.entries(pages)) {
                const answer = await page.goto(service + path);
                const { length } = await answer.body();
                assert.ok(length < 100 * 1024, `${name} has ${length} bytes`);
                // With scripts, a live preview replaces a part of the page.
                if (/newContract-quantities|newPricing/.test(name)) await page.waitForLoadState('networkidle');
                await page.$$eval('.sheet details', (all) => all.forEach((one) => (one.open = true)));
                await look(page, name, size, colorScheme);
            }
            if (pictures) {
                const printed = await context.request.get(`${service}${pages.document.replace('/console/', '/api/')}/pdf`);
                assert.equal(printed.status(), 200);
                writeFileSync(join(pictures, 'printed.pdf'), await printed.body());
            }
            await page.goto(`${service}/console/new/formats`);
            await page.fill('[name=sample]', '{"a": ');
            await page.click('button:text("Test")');
            await page.waitForSelector('.wrong');
            await look(page, 'format-wrong', size, colorScheme);
            await api('POST', pages.contract.replace('/console/contracts/', '/api/contracts/quantities/'), seats);
            await page.goto(`${service}${pages.contract}/seats`);
            await page.fill('[name=quantity]', '12');
            await page.click('button:text-is("Preview")');
            await page.waitForSelector('.changes');
            await look(page, 'preview', size, colorScheme);
            await page.goto(`${service}/console/documents?state=DRAFT`);
            await page.check('tbody [name=ref] >> nth=0');
            await page.click('button:text-is("Issue drafts")');
            await page.waitForSelector('p:text("Nothing is saved yet")');
            await look(page, 'bulk', size, colorScheme);
            await context.close();
        }
    }
}

// The thirteen months of a sandbox, and its clock: a day, the next due instant, a chosen day.
async function aYear(browser) {
    for (const [size, viewport] of Object.entries(SIZES)) {
        const context = await browser.newContext({ viewport });
        context.setDefaultTimeout(20_000);
        const page = await loggedIn(context, sandbox);
        await look(page, 'sandbox-home', size, 'light');
        const lists = {
            contract: '/console/contracts?columns=customer.customer_name&columns=contract_number',
            document: '/console/documents?overdue=true', correction: '/console/documents?kind=DEBIT',
        };
        for (const [name, list] of Object.entries(lists)) {
            await page.goto(sandbox + list);
            await page.goto(sandbox + (await first(page, `/console/${name === 'contract' ? 'contracts' : 'documents'}/`)));
            await look(page, `sandbox-${name}`, size, 'light');
        }
        const shown = async () => new Date(await page.getAttribute('form.sandbox time', 'datetime')).getTime();
        const before = await shown();
        await page.click('form.sandbox button:text-is("+1 day")');
        await page.waitForURL('**/console/clock?since=*');
        assert.equal(await shown(), before + 86_400_000);
        await page.click('form.sandbox button:text-is("To the next due instant")');
        await page.waitForURL('**/console/clock?since=*');
        assert.ok((await shown()) > before + 86_400_000);
        const day = new Date(before + 100 * 86_400_000).toISOString().slice(0, 10);
        await page.fill('form.sandbox [name=day]', day);
        await page.click('form.sandbox button:text-is("To this day")');
        await page.waitForSelector(`main time[datetime^="${day}"]`);
        await look(page, 'sandbox-clock', size, 'light');
        await page.click('main a:text-is("Documents issued meanwhile")');
        await page.waitForSelector('tbody tr');
        await context.close();
    }
}

if (pictures) mkdirSync(pictures, { recursive: true });
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
try {
    for (const [of, javaScriptEnabled] of [['with scripts', true], ['without scripts', false]]) {
        for (const [name, journey] of Object.entries(journeys).filter(([name]) => name.includes(only))) {
            const context = await browser.newContext({ javaScriptEnabled });
            context.setDefaultTimeout(20_000);
            await journey(context, of).catch((error) => {
                throw new Error(`${name}, ${of}`, { cause: error });
            });
            await context.close();
            console.log(`ok: ${name}, ${of}`);
        }
    }
    const services = empty.split(',');
    for (const [size, viewport] of Object.entries(SIZES)) {
        for (const [scripts, javaScriptEnabled] of [['on', true], ['off', false]]) {
            const of = `${size}, scripts ${scripts}`;
            const run = async (name, journey) => {
                if (!name.includes(only)) return;
                const context = await browser.newContext({ javaScriptEnabled, viewport });
                context.setDefaultTimeout(20_000);
                await context.addInitScript(countActions);
                await journey(context).catch((error) => {
                    throw new Error(`${name}, ${of}`, { cause: error });
                });
                await context.close();
                console.log(`ok: ${name}, ${of}`);
            };
            for (const [name, task] of Object.entries(tasks)) {
                await run(name, async (context) => {
                    const user = new CountedPage(await loggedIn(context), of);
                    await user.start();
                    await task(user, `${size}-${scripts}`);
                });
            }
            const isTaken = pictures && size === 'desktop' && scripts === 'off';
            const from = services.shift();
            await run('from nothing to the first invoice', (context) => firstRun(context, of, from, isTaken ? pictures : null));
        }
    }
    if ('a year in a sandbox'.includes(only)) {
        await aYear(browser);
        console.log('ok: a year in a sandbox');
    }
    if (process.env.PAGES && 'imports and prices'.includes(only)) {
        await importsAndPrices(browser);
        console.log('ok: imports and prices');
    }
    if (only) {
        assert.deepEqual(faults, []);
        console.log('ok: the selected journeys');
    } else {
        const sizes = Object.keys(SIZES).flatMap((size) => [`${size}, scripts on`, `${size}, scripts off`]);
        assert.deepEqual([...ended].sort(), Object.keys(MOST).flatMap((task) => sizes.map((of) => `${task}, ${of}`)).sort());
        await foreignPages(browser);
        console.log('ok: what another page can do');
        if (process.env.PAGES) await everyPage(browser);
        assert.deepEqual(faults, []);
        console.log('ok: all of it');
    }
} finally {
    await browser.close();
}
