// The usual tasks of newcomers and administrators in the console, and the most clicks and fields that each may take. `journeys.mjs`
// runs them in a browser with and without scripts, on a desktop and on a phone.
import assert from 'node:assert/strict';

import { amountOf, api, look, open, seats, sell, service, stateOf } from './tools.mjs';

// The most clicks and fields of each task. The third number is the clicks more on a phone, whose menu shows only the parts of the
// current group: a group opens with its first part.
export const MOST = {
    // A newcomer, up to the first invoice
    'first steps: entity': [1, 6],
    'first steps: usage product': [1, 2],
    'first steps: pricing': [1, 4],
    'first steps: customer': [1, 5],
    'first steps: contract': [1, 0],
    'first steps: key and first call': [1, 0],
    'first steps: first invoice': [1, 0],
    'first steps: calculation of a line': [2, 0],
    'first steps: operation in the reference': [2, 1],
    'first steps: invited colleague': [2, 2, 1],
    // An administrator
    'customer with reverse charge': [3, 6],
    'pricing with fee, seats and two meters': [4, 10],
    'line item added to a pricing': [4, 4],
    'partial credit from an invoice': [4, 2],
    'usage product': [3, 2, 1],
    'bank account': [3, 3, 1],
    entity: [3, 3],
    'logo of an entity': [3, 1],
    'new contract': [7, 3, 1],
    'contract in calendar months': [6, 3, 1],
    seats: [3, 1],
    price: [3, 2],
    end: [3, 1],
    charge: [3, 2],
    'canceled contract': [3, 0],
    'credit note': [9, 1],
    payment: [3, 0],
    'bounced payment': [3, 1],
    'write-off': [3, 1],
    'reversed write-off': [2, 0],
    'voided document': [2, 0],
    'customer found by name': [2, 1],
    'statement of a customer': [1, 0],
    'import with undo': [6, 1, 1],
    'import of an unknown column': [5, 2, 1],
    'API key': [2, 1, 1],
    'invited administrator': [2, 2],
    'what a role may do': [2, 0],
};

// The tasks that ended, each with the size of the page and whether it has scripts.
export const ended = new Set();

// Lets the browser count what a person does: clicks on links and buttons, and filled fields.
export const countActions = () => {
    const count = (what) => sessionStorage.setItem(what, Number(sessionStorage.getItem(what)) + 1);
    addEventListener('click', ({ target }) => target.closest('a, button, summary') && count('clicks'), true);
    addEventListener('input', () => count('fields'), true);
};

// A page on which the clicks on links and buttons and the filled fields of a task are counted. With scripts, the browser counts them, too.
export class CountedPage {
    constructor(page, of) {
        const [size, scripts] = of.split(', ');
        Object.assign(this, { page, of, isPhone: size === 'phone', hasScripts: scripts === 'scripts on' });
        // Nobody enters an address in the middle of a task.
        const goto = page.goto.bind(page);
        page.goto = (address) => {
            this.addresses += 1;
            return goto(address);
        };
    }

    async click(selector) {
        this.clicks += 1;
        await (typeof selector === 'string' ? this.page.click(selector) : selector.click());
    }

    open(name) {
        return open(this.page, name, (locator) => this.click(locator));
    }

    async fill(name, value) {
        this.fields += 1;
        const field = `[name="${name}"]`;
        if (await this.page.locator(`select${field}`).count()) await this.page.selectOption(field, value);
        else await this.page.fill(field, value);
    }

    async check(name, value) {
        this.fields += 1;
        await this.page.check(`[name="${name}"][value="${value}"]`);
    }

    async fillAll(fields) {
        for (const [name, value] of Object.entries(fields)) await this.fill(name, value);
    }

    async choose(name, type, text) {
        this.fields += 1;
        await this.page.setInputFiles('[name=file]', { name, mimeType: type, buffer: Buffer.from(text) });
    }

    press(name) {
        return this.click(`main button:not(.first):text-is("${name}")`);
    }

    // Invites an administrator on the page of the team, which also has a choice of the role of each administrator.
    async invite(email) {
        await this.fill('email', email);
        this.fields += 1;
        await this.page.selectOption('#role', 'finance');
        await this.press('Invite administrator');
        await this.page.waitForSelector('dd code');
    }

    // Previews a form and carries it out.
    async confirm(button, notice) {
        await this.press('Preview');
        await this.press(button);
        await this.says(notice);
    }

    link(name) {
        return this.click(`main a:text-is("${name}")`);
    }

    async says(notice) {
        await this.page.waitForSelector(`[role=status]:text("${notice}")`);
    }

    // Returns the clicks and fields that the browser counted.
    seen() {
        return this.page.evaluate(() => ['clicks', 'fields'].map((what) => Number(sessionStorage.getItem(what))));
    }

    // Counts from here on.
    async start() {
        Object.assign(this, { clicks: 0, fields: 0, addresses: 0, before: this.hasScripts && (await this.seen()) });
    }

    // Ends a task, which takes at most as many clicks and fields as the table says, and looks at its last page.
    async end(task) {
        console.log(`journey ${task}, ${this.of}: ${this.clicks} clicks, ${this.fields} fields`);
        const [clicks, fields, ofPhone = 0] = MOST[task];
        const most = [clicks + (this.isPhone ? ofPhone : 0), fields];
        assert.ok(this.clicks <= most[0] && this.fields <= most[1], `${task}: ${this.clicks} clicks and ${this.fields} fields, more than ${most}`);
        assert.equal(this.addresses, 0, `${task} enters an address`);
        if (this.hasScripts) {
            const seen = (await this.seen()).map((count, place) => count - this.before[place]);
            assert.deepEqual([this.clicks, this.fields], seen, `${task}: the browser counts otherwise`);
        }
        ended.add(`${task}, ${this.of}`);
        await this.look(task.replaceAll(' ', '-'));
        await this.start();
    }

    // Checks the page, which takes scripts.
    async look(name) {
        if (this.hasScripts) await look(this.page, name, this.isPhone ? 'phone' : 'desktop', 'light');
    }

    // Returns the new amount of each document in a preview, with the document's address if it already exists.
    async preview() {
        await this.page.waitForSelector('p:text("Nothing is saved yet")');
        const rows = [];
        for (const row of await this.page.locator('.changes tbody:has(th:text("Billed amounts")) tr:not(.total)').all()) {
            const amount = row.locator('td:nth-child(3) data');
            if (!(await amount.count())) continue;
            const link = row.locator('th a');
            const address = (await link.count()) ? await link.first().getAttribute('href') : null;
            rows.push({ document: address?.split('/').pop(), amount: Number(await amount.first().getAttribute('value')) });
        }
        return rows;
    }
}

// Checks that the documents of a contract have the amounts of a preview.
async function checkPreview(rows, contract) {
    const totals = [];
    for (const which of ['current', 'next']) {
        totals.push(...(await api('GET', `/api/contracts/invoices/${which}/${contract}`)).map(({ total }) => total));
    }
    for (const { document, amount } of rows) {
        if (document) assert.equal((await api('GET', `/api/documents/${document}`)).total, amount);
        else assert.ok(totals.includes(amount), `${amount} is not among ${totals}`);
    }
}

// Returns the contract of a document.
async function contractOf(document) {
    return (await api('GET', `/api/documents/${document}`)).contract_ref;
}

export const tasks = {
    async 'customer with reverse charge'(user, id) {
        await user.start();
        await user.open('Customers');
        await user.link('New customer');
        await user.fillAll({
            name: `Reverse ${id}`, 'billing_address/line1': 'Rue 1', 'billing_address/city': 'Paris', 'billing_address/country_code': 'FR',
            vat_id: 'FR12345678901', '@tax': 'REVERSE_CHARGE',
        });
        await user.press('Create');
        await user.says('Customer created.');
        await user.end('customer with reverse charge');
        const reference = user.page.url().split('?')[0].split('/').pop();
        const { tax, tax_category: category, exemption_code: code } = await api('GET', `/api/customers/${reference}`);
        assert.deepEqual([reference, tax, category, code], [`reverse-${id}`, 0, 'AE', 'VATEX-EU-AE']);
    },

    async 'pricing'(user, id) {
        const { page } = user;
        await user.start();
        await user.open('Pricings');
        await user.link('New pricing');
        await user.press('Add meter');
        await page.waitForSelector('[name="line_items/3/usage_product_ref"]');
        const unit = (place) => ({ [`line_items/${place}/usage_product_ref`]: 'api-calls', [`line_items/${place}/name`]: `Calls ${place}` });
        await user.fillAll({
            name: `Team ${id}`, currency: 'EUR', 'line_items/0/price/amount': '49', 'line_items/1/price/amount': '20',
            ...unit(2), 'line_items/2/price/unit_price': '0.05', ...unit(3), 'line_items/3/price/unit_price': '0.01',
        });
        await user.press('Create');
        await user.says('Pricing created.');
        await user.end('pricing with fee, seats and two meters');
        const { line_items: items } = await api('GET', `/api/pricings/team-${id}`);
        assert.deepEqual(items.map((item) => item.line_item_id), ['fee', 'seats', 'calls-2', 'calls-3']);

        await user.link('Edit');
        await user.press('Add meter');
        await page.waitForSelector('[name="line_items/4/price/model"]');
        await user.fillAll({ 'line_items/4/usage_product_ref': 'api-calls', 'line_items/4/price/model': 'PACKAGE' });
        // Without scripts, the fields of other price models are folded.
        const size = page.locator('[name="line_items/4/price/package_size"]');
        if (!(await size.isVisible())) await user.click(page.locator('[id="part-line_items/4"] > details.others > summary'));
        await user.fillAll({ 'line_items/4/price/package_size': '1000', 'line_items/4/price/package_price': '40' });
        await user.press('Save');
        await user.says('Pricing updated.');
        await user.end('line item added to a pricing');
        const { line_items: after } = await api('GET', `/api/pricings/team-${id}`);
        assert.deepEqual(after.slice(0, 4), items);
        assert.deepEqual([after[4].line_item_id, after[4].price.package_size], ['api-calls', 1000]);
    },

    async 'partial credit'(user, id) {
        const document = await sell(`partly-${id}`, 'Partly Ltd');
        await api('POST', `/api/documents/issue/${document}`);
        await user.page.goto(`${service}/console/documents/${document}`);
        await user.start();
        await user.click('main summary:text-is("Credit")');
        await user.click('main li a:has-text("API calls")');
        await user.fill('unit_price', '-20');
        await user.confirm('Add charge', 'Charge created.');
        await user.end('partial credit from an invoice');
        const { related_documents: related } = await api('GET', `/api/documents/${document}`);
        const [credit] = related.filter(({ kind }) => kind === 'CREDIT');
        assert.equal(Math.abs((await api('GET', `/api/documents/${credit.document_ref}`)).total), 20);
    },

    async 'catalog'(user, id) {
        const { page } = user;
        const create = async (part, button, fields, notice, task, reference) => {
            await user.open(part);
            await user.link(button);
            await user.fillAll(fields);
            const shown = page.locator('[data-made-from]');
            // The script shows the reference that will be stored.
            if (user.of.endsWith('on')) await page.waitForSelector(`[data-made-from][placeholder="${reference}"]`, { state: 'attached' });
            assert.equal(await shown.count(), 1);
            await user.press('Create');
            await user.says(notice);
            assert.equal(new URL(page.url()).pathname.split('/').pop(), reference);
            await user.end(task);
        };
        await create('Usage products', 'New usage product', { name: `Størage ${id}`, unit: 'GB' }, 'Usage product created.', 'usage product', `storage-${id}`);
        const account = { account_name: 'We', iban: 'DE89370400440532013000', bank_name: `Bank ${id}` };
        await create('Bank accounts', 'New bank account', account, 'Bank account created.', 'bank account', `bank-${id}`);
        const prefix = `X${['desktop-on', 'desktop-off', 'phone-on', 'phone-off'].indexOf(id)}`;
        const entity = { name: `Seller ${id}`, number_prefix: prefix, timezone: 'Europe/Berlin' };
        await create('Entities', 'New entity', entity, 'Entity created.', 'entity', `seller-${id}`);
        await user.link('Logo');
        const svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 60 16"><rect width="60" height="16" fill="#0b5cad"/></svg>';
        await user.choose('logo.svg', 'image/svg+xml', svg);
        await user.press('Preview');
        const { width, height } = await page.locator('.letterhead img').boundingBox();
        assert.ok(Math.abs(width / height - 60 / 16) < 0.1, `${width} × ${height}`);
        await user.look('logo-on-paper');
        await user.press('Save logo');
        await user.says('Changes saved.');
        await user.end('logo of an entity');
    },

    async 'contract in calendar months'(user, id) {
        const customer = `months-${id}`;
        await api('POST', '/api/customers/', { customer_ref: customer, name: 'Months Ltd' });
        await user.start();
        await user.open('Contracts');
        await user.link('New contract');
        await user.click(`.choice a[href*="customer_ref=${customer}&"]`);
        await user.check('pricing', 'api-plan');
        await user.press('Continue');
        await user.fill('start', '2098-01-15');
        await user.check('periods', 'calendar');
        await user.press('Continue');
        await user.page.waitForLoadState('networkidle');
        await user.press('Create contract');
        await user.says('Contract created.');
        await user.end('contract in calendar months');
        const [{ products: [product] }] = await api('GET', `/api/contracts/search?customer_ref=${customer}`);
        assert.equal(product.issue_day, '2098-02-01');
    },

    async 'charge and cancel'(user, id) {
        const contract = await contractOf(await sell(`leaves-${id}`, 'Leaves Ltd'));
        await user.page.goto(`${service}/console/contracts/${contract}`);
        await user.start();
        await user.link('Add charge or credit');
        await user.fillAll({ name: 'Set-up', unit_price: '250' });
        await user.confirm('Add charge', 'Charge created.');
        await user.end('charge');
        await user.page.goto(`${service}/console/contracts/${contract}`);
        await user.start();
        await user.link('Cancel contract');
        await user.confirm('Cancel contract', 'Cancellation recorded.');
        await user.end('canceled contract');
    },

    async 'write-off and void'(user, id) {
        const document = await sell(`owes-${id}`, 'Owes Ltd');
        await api('POST', `/api/documents/issue/${document}`);
        await user.page.goto(`${service}/console/documents/${document}`);
        await user.start();
        await user.link('Write off amount');
        await user.fill('reason', 'insolvent');
        await user.confirm('Write off amount', 'Amount written off.');
        await user.end('write-off');
        await user.link('Reverse write-off');
        await user.press('Reverse write-off');
        await user.says('Write-off reversed.');
        await user.end('reversed write-off');
        await user.link('Void document');
        await user.press('Void document');
        await user.says('Document voided.');
        await user.end('voided document');
        assert.equal(await stateOf(document), 'VOID');
    },

    async 'found by name'(user, id) {
        await sell(`found-${id}`, `Findable ${id}`);
        await user.start();
        await user.fill('q', `Findable ${id}`);
        await user.click('form.search button');
        await user.click(`main a:text-is("Findable ${id}")`);
        await user.end('customer found by name');
        await user.link('Statement');
        await user.page.waitForSelector('main a:text-is("PDF")');
        await user.end('statement of a customer');
    },

    async 'access'(user, id) {
        await user.start();
        await user.open('API keys');
        await user.fill('name', `Key ${id}`);
        await user.press('Create key');
        await user.page.waitForSelector('dd code');
        await user.end('API key');
        await user.open('Team');
        await user.invite(`new-${id}@example.com`);
        await user.end('invited administrator');
        await user.click('header a[href="/console/account"]');
        await user.click('dd a[href="/console/roles/owner"]');
        await user.page.waitForSelector('h2:text("Permitted operations")');
        await user.end('what a role may do');
    },

    async 'import of an unknown column'(user, id) {
        const customer = `unknown-${id}`;
        await sell(customer, `Unknown ${id}`);
        const file = `at,who pays,product,quantity\n${new Date().toISOString()},Unknown ${id},api-calls,7\n`;
        await user.start();
        await user.open('Imports');
        await user.link('Import file');
        await user.choose(`${customer}.csv`, 'text/csv', file);
        await user.press('Preview');
        await user.page.waitForSelector('label:text("Which column is the customer?")');
        await user.look('import-question');
        await user.fill('customer_ref', 'who pays');
        await user.press('Continue');
        await user.press('Import 1 event');
        await user.says('File imported.');
        await user.end('import of an unknown column');
    },

    async 'new contract'(user, id) {
        const customer = `signs-${id}`;
        await api('POST', '/api/customers/', { customer_ref: customer, name: 'Signs Ltd' });
        await user.start();
        await user.open('Contracts');
        await user.link('New contract');
        await user.click(`.choice a[href*="customer_ref=${customer}&"]`);
        await user.check('pricing', 'api-plan');
        await user.press('Continue');
        await user.press('Continue');
        await user.fill('quantity/api-plan/platform-fee', '10');
        await user.fill('discount', '10');
        await user.press('Update preview');
        for (const part of ['"quantity":"10"', '"discount":"10"']) {
            await user.page.waitForSelector(`[name=previewed][value*='${part}']`, { state: 'attached' });
        }
        const rows = await user.preview();
        assert.ok(rows.length > 0);
        assert.deepEqual(await api('GET', `/api/contracts/search?customer_ref=${customer}`), []);
        // With scripts, the preview is loaded again beside the form.
        await user.page.waitForLoadState('networkidle');
        await user.press('Create contract');
        await user.says('Contract created.');
        await user.end('new contract');
        const [{ contract_ref: contract }] = await api('GET', `/api/contracts/search?customer_ref=${customer}`);
        await checkPreview(rows, contract);
    },

    async 'changed contract'(user, id) {
        const draft = await sell(`changes-${id}`, 'Changes Ltd');
        const contract = await contractOf(draft);
        await api('POST', `/api/contracts/quantities/${contract}`, seats);
        const { page } = user;
        // Previews a form, carries it out and compares the result with the preview.
        const change = async (button, notice, isSeen = true) => {
            await user.press('Preview');
            const rows = await user.preview();
            assert.ok(!isSeen || rows.length > 0, `no documents: ${button}`);
            await user.press(button);
            await user.says(notice);
            await checkPreview(rows, contract);
        };
        await page.goto(`${service}/console/contracts/${contract}`);
        const before = (await api('GET', `/api/documents/${draft}`)).total;

        await user.start();
        await user.click('.actions a:text-is("Change seats")');
        await user.fill('quantity', '12');
        await change('Change seats', 'Seats changed.');
        await user.end('seats');

        await user.start();
        await user.click('main tr:has(th:text-is("Platform fee")) a:text-is("Change price")');
        await user.fill('amount', '30');
        await user.check('start', 'current');
        await change('Change price', 'Price changed.');
        await user.end('price');
        assert.notEqual((await api('GET', `/api/documents/${draft}`)).total, before);

        const now = new Date();
        const lastDay = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 0)).toISOString().slice(0, 10);
        await user.start();
        await user.click('.actions a:text-is("Move end")');
        await user.fill('billing_end_date', lastDay);
        await change('Move end', 'Last day changed.', false);
        await user.end('end');
        assert.equal((await api('GET', `/api/contracts/${contract}`)).effective_end_date, lastDay);

        // The document is issued at the amount of its last preview.
        const previewed = (await api('GET', `/api/documents/${draft}`)).total;
        await page.goto(`${service}/console/do/issue/${draft}`);
        const [{ amount }] = (await user.preview()).filter(({ document }) => document === draft);
        await user.press('Issue document');
        await user.says('Document issued.');
        const { state, total } = await api('GET', `/api/documents/${draft}`);
        assert.deepEqual([state, total, amount], ['ISSUED', previewed, previewed]);
    },

    async 'credit note'(user, id) {
        const document = await sell(`corrects-${id}`, 'Corrects Ltd');
        await api('POST', `/api/documents/issue/${document}`);
        const { page } = user;
        await page.goto(`${service}/console/documents/${document}`);
        await user.start();
        await user.click('summary:text("Calculation") >> nth=-1');
        await user.link('Show usage events');
        await user.click('tbody tr td:first-child a');
        await user.link('Edit');
        await user.fill('quantity', '500');
        await user.press('Preview');
        await page.waitForSelector('.changes');
        await user.press('Save');
        await user.says('Usage event updated.');
        const { related_documents: related } = await api('GET', `/api/documents/${document}`);
        const credit = related.find(({ kind }) => kind === 'CREDIT');
        assert.ok(credit, JSON.stringify(related));
        await user.click(`main a[href="/console/documents/${credit.document_ref}"]`);
        if ((await stateOf(credit.document_ref)) === 'DRAFT') {
            await user.link('Issue document');
            await page.waitForSelector(amountOf('Would be issued'));
            await user.press('Issue document');
            await user.says('Document issued.');
        }
        await user.end('credit note');
        assert.notEqual(await stateOf(credit.document_ref), 'DRAFT');
        // 500 calls less than 1,000 cost 0.05 each, and 500 more than 1,000 cost 0.01 each.
        assert.equal(Math.abs((await api('GET', `/api/documents/${credit.document_ref}`)).total), 30);
    },

    async 'bounced payment'(user, id) {
        const document = await sell(`bounces-${id}`, 'Bounces Ltd');
        await api('POST', `/api/documents/issue/${document}`);
        await user.page.goto(`${service}/console/documents/${document}`);
        await user.start();
        await user.link('Record payment');
        await user.press('Preview');
        await user.press('Record payment');
        await user.says('Payment of');
        await user.end('payment');
        assert.equal(await stateOf(document), 'PAID');
        await user.link('Reverse');
        await user.fill('reason', 'bounced');
        await user.press('Preview');
        await user.page.waitForSelector('.changes');
        await user.press('Reverse payment');
        await user.says('Payment reversed.');
        await user.end('bounced payment');
        assert.equal(await stateOf(document), 'ISSUED');
    },

    async 'import with undo'(user, id) {
        const customer = `files-${id}`;
        const document = await sell(customer, 'Files Ltd');
        const total = async () => (await api('GET', `/api/documents/${document}`)).total;
        const before = await total();
        const line = (n) => `${customer}/${n},${new Date().toISOString()},${customer},api-calls,${n}00\n`;
        const file = `idempotency_key,timestamp,customer_ref,usage_product_ref,quantity\n${line(1)}${line(2)}`;
        await user.start();
        await user.open('Imports');
        await user.link('Import file');
        await user.choose(`${customer}.csv`, 'text/csv', file);
        await user.press('Preview');
        await user.press('Import 2 events');
        await user.says('File imported.');
        assert.notEqual(await total(), before);
        await user.link('Undo import');
        await user.press('Delete 2 events');
        await user.says('Import undone.');
        await user.end('import with undo');
        assert.equal(await total(), before);
    },
};
