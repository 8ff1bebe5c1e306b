// What the journeys and tasks share: the service, its API, and checks of pages.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

// The packages are installed in another directory.
const require = createRequire(join(process.env.NODE_TOOLS, 'journeys.mjs'));
export const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export const [service, executablePath, pictures] = process.argv.slice(2);
const { EMAIL: email, PASSWORD: password, TOKEN: token } = process.env;

export async function api(method, path, body) {
    const answer = await fetch(service + path, {
        method,
        headers: { Authorization: `Bearer ${token}`, Version: 'V0', ...(body && { 'Content-Type': 'application/json' }) },
        body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
}

// Returns the address of the first link on a page to something below a path.
export const first = async (page, path) => page.getAttribute(`main a[href^="${path}"]`, 'href');

// Opens a part of the console by the navigation. A phone shows only the parts of the current group, and a group opens with its first part.
export async function open(page, name, click = (locator) => locator.click()) {
    const hasText = new RegExp(`^${name}$`);
    const link = page.locator('nav.parts a:not(.tab)', { hasText });
    if (!(await link.isVisible())) {
        await click(page.locator('nav.parts .group').filter({ has: page.locator('li a', { hasText }) }).locator('.tab'));
        await link.waitFor();
        if ((await link.getAttribute('aria-current')) === 'page') return;
    }
    await click(link);
}

// Returns the selector of a new amount in a preview, of the first document with an effect.
export const amountOf = (effect) => `.changes tr:has(.muted:text("${effect}")) td:nth-child(3) data`;

export async function stateOf(document) {
    return (await api('GET', `/api/documents/${document}`)).state;
}

// Creates a customer with a name, a contract and usage. Returns the reference of the invoice.
export async function sell(customer, name) {
    await api('POST', '/api/customers/', { customer_ref: customer, name });
    const product = { product_pricing_ref: 'api-plan', billing_start_date: '2026-01-01', billing_end_date: '2099-12-31' };
    await api('POST', '/api/contracts/', { customer_ref: customer, products: [product] });
    const timestamp = new Date().toISOString();
    const event = { timestamp, customer_ref: customer, usage_product_ref: 'api-calls', quantity: 1500 };
    return (await api('POST', '/api/usage/event', event)).related_document_ref;
}

// Only a line item with an agreed quantity has seats to change.
export const seats = { product_pricing_ref: 'api-plan', line_item_id: 'platform-fee', quantity: 2 };

export async function logIn(page) {
    await page.fill('[name=email]', email);
    await page.fill('[name=password]', password);
    await page.click('main button');
}

export async function loggedIn(context, at = service) {
    const page = await context.newPage();
    await page.goto(`${at}/console`);
    await logIn(page);
    await page.waitForSelector('h1:text("Home")');
    return page;
}

// What is wrong on any page. All pages are checked before the faults are reported.
export const faults = [];

export async function look(page, name, size, colorScheme) {
    if (pictures) await page.screenshot({ path: join(pictures, `${name}-${size}-${colorScheme}.png`), fullPage: true });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run());
    const grave = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    const told = grave.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
    const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (tooWide > 0) told.push(`${tooWide} pixels too wide`);
    const broken = await page.$$eval('main td code', (all) => all.filter((one) => /^\w+$/.test(one.textContent) && one.getClientRects().length > 1).map((one) => one.textContent));
    if (name.startsWith('docs') && broken.length > 0) told.push(`broken names: ${broken.join(', ')}`);
    faults.push(...told.map((fault) => `${name}, ${size}, ${colorScheme}: ${fault}`));
}
